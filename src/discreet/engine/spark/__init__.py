"""Spark: prepares tables that one machine would not, and answers questions about them."""
