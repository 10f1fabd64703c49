"""Chains of states, annealing, and where they run."""
