"""What votes cost: by their own clearness, which is private, and what of that may be said."""

from tacit.pate.accounting.data_dependent import log_chance_of_upset, query_renyi, votes_renyi
from tacit.pate.accounting.sanitised import Sanitised, SanitisedCost, WorstCase, tell_cost
from tacit.pate.accounting.smooth import SeveralClasses, TwoClasses, smooth_sensitivity

__all__ = [
    "Sanitised",
    "SanitisedCost",
    "SeveralClasses",
    "TwoClasses",
    "WorstCase",
    "log_chance_of_upset",
    "query_renyi",
    "smooth_sensitivity",
    "tell_cost",
    "votes_renyi",
]
