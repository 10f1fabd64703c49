"""Reproduction of the paper [Y25]: its numbers, the experiments, the comparison. Only cli imports it."""
