"""Exact sums over the states of one layer."""
