"""The nouns: frozen, without input or output."""
