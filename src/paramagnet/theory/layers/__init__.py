"""The averages of one layer that the theory uses, for each unit type."""
