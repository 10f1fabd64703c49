"""Training and likelihoods."""
