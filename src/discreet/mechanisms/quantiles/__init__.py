"""Quantiles by the exponential mechanism over ranks, exactly, ties and all."""
