"""How other people's code uses paramagnet."""
