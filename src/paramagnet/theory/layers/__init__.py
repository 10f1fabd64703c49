"""What the theory needs of one layer, by unit type."""
