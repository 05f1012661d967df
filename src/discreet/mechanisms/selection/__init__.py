"""Choosing: the exponential mechanism, permute-and-flip, noisy max, the k best."""
