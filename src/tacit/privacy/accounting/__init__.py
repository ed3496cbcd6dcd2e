"""Accounting: composition, loss distributions, calibration, trade-offs, the best of K runs."""
