"""Objective perturbation: its noise, its adaptation to the count, its plan and its solution."""
