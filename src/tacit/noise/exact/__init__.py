"""Exact sampling: lattices, interval arithmetic, and numbers whose bits are drawn when needed."""
