"""How well a model does on sensitive records: one noisy release, every metric from it."""

from tacit.metrics.evaluating import counted_on, evaluate, evaluation_of, plan_for
from tacit.metrics.evaluation import ConfusionMatrix, Curve, Evaluation, TooFewRecords
from tacit.metrics.intervals import Estimate
from tacit.metrics.planning import EvaluationPlan, evaluation_plan
from tacit.metrics.scoring import private_score

__all__ = [
    "ConfusionMatrix",
    "Curve",
    "Estimate",
    "Evaluation",
    "EvaluationPlan",
    "TooFewRecords",
    "counted_on",
    "evaluate",
    "evaluation_of",
    "evaluation_plan",
    "plan_for",
    "private_score",
]
