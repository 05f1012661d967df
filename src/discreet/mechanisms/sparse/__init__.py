"""Sparse vector: many questions, paid only for those above a threshold."""
