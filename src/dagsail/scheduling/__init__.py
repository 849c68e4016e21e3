"""The verbs: what is legal, what is placed, in which order."""
