"""Mechanisms of private empirical risk minimisation, one file each."""
