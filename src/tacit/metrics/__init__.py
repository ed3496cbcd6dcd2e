"""Evaluate a model on sensitive records: all metrics follow from one noisy release."""

from tacit.metrics.evaluate import evaluate, private_score
from tacit.metrics.evaluation import Evaluation, TooFewRecords
from tacit.metrics.planning import EvaluationPlan, evaluation_plan

__all__ = [
    "Evaluation",
    "EvaluationPlan",
    "TooFewRecords",
    "evaluate",
    "evaluation_plan",
    "private_score",
]
