"""Benchmarks, each a module with a ``main``: ``python -m bench [name ...]``."""
