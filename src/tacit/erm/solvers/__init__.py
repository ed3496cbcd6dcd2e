"""Certified minimisation of perturbed objectives."""
