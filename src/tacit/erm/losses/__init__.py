"""Losses: one idea a file. A new loss is one file and one line here."""

from tacit.erm.losses.base import Loss, PointLoss
from tacit.erm.losses.hinge import HingeLoss, SmoothHingeLoss
from tacit.erm.losses.logistic import LogisticLoss
from tacit.erm.losses.points import DistanceLoss, SquaredDistanceLoss
from tacit.erm.losses.poisson import PoissonLoss
from tacit.erm.losses.quantile import AbsoluteLoss, QuantileLoss
from tacit.erm.losses.softmax import SoftmaxLoss
from tacit.erm.losses.squared import HuberLoss, SquaredLoss

__all__ = [
    "AbsoluteLoss",
    "DistanceLoss",
    "HingeLoss",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "PointLoss",
    "PoissonLoss",
    "QuantileLoss",
    "SmoothHingeLoss",
    "SoftmaxLoss",
    "SquaredDistanceLoss",
    "SquaredLoss",
]
