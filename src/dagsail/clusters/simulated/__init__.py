"""A cluster that exists only in arrays."""
