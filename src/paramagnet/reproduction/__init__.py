"""Reproduction of the paper [Y25]: its numbers, the experiments, the comparison. Only cli imports it.

[Y25] Yasuda, Maeno and Takahashi, Neural Networks 187 (2025), arXiv:2409.07708.
"""
