"""Exact numbers: fractions in, certified bounds and deliberate rounding out."""
