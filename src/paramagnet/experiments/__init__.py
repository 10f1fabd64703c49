"""The evidence: the numbers of the paper, and ours."""
