"""Gradients of the log-likelihood: how the averages under the model are found."""
