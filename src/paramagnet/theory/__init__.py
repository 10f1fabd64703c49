"""The replica theory of random machines: knows no data and no machine."""
