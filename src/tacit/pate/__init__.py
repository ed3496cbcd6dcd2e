"""Train teachers on disjoint parts of the records, and a student on their noisy votes."""

from tacit.pate.aggregators import Confident, GNMax, LNMax, Majority
from tacit.pate.classifier import PATEClassifier
from tacit.pate.plan import PATEPlan, Sanitised, SanitisedCost, WorstCase
from tacit.pate.published_student import PublishedStudent, published
from tacit.pate.query_points import (
    AllQueries,
    ChosenQueries,
    DesignedQueries,
    KMeansQueries,
    RandomQueries,
)
from tacit.pate.regressor import PATERegressor
from tacit.pate.student import SemiSupervised

__all__ = [
    "AllQueries",
    "ChosenQueries",
    "Confident",
    "DesignedQueries",
    "GNMax",
    "KMeansQueries",
    "LNMax",
    "Majority",
    "PATEClassifier",
    "PATEPlan",
    "PATERegressor",
    "PublishedStudent",
    "RandomQueries",
    "Sanitised",
    "SanitisedCost",
    "SemiSupervised",
    "WorstCase",
    "published",
]
