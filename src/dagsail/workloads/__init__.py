"""Where workflows come from."""
