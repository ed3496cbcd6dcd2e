"""Describe a table privately: counts, shares, means and quartiles with intervals."""

from tacit.descriptive.description import Description
from tacit.descriptive.figures import Figure
from tacit.descriptive.planning import DescriptionPlan, Width, plan_description
from tacit.descriptive.release import describe

__all__ = ["Description", "DescriptionPlan", "Figure", "Width", "describe", "plan_description"]
