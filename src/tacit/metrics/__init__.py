"""Evaluate a model on sensitive records: all metrics follow from one noisy release."""

from tacit.metrics.evaluate import evaluate, evaluation_of, plan_for, private_score
from tacit.metrics.evaluation import ConfusionMatrix, Curve, Estimate, Evaluation, TooFewRecords
from tacit.metrics.planning import EvaluationPlan, evaluation_plan

__all__ = [
    "ConfusionMatrix",
    "Curve",
    "Estimate",
    "Evaluation",
    "EvaluationPlan",
    "TooFewRecords",
    "evaluate",
    "evaluation_of",
    "evaluation_plan",
    "plan_for",
    "private_score",
]
