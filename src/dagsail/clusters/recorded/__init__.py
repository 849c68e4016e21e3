"""A cluster that repeats a recorded run."""
