"""Accounting: composition, loss distributions, calibration, trade-offs, private selection."""
