"""The only compiled code: arrays in, arrays out."""
