"""Adapters: paramagnet in PyTorch, JAX, scikit-learn, and for archives of the package rbms."""
