"""Judges runs: metrics, bounds, timelines, and comparisons over seeds."""
