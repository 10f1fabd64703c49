"""Datasets and data files."""
