"""Policies that weigh features: what a decision looks at, and the sums that choose."""
