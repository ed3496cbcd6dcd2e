"""Errors of predicted numbers, from five noisy sums."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.metrics.evaluation import Evaluation
from tacit.metrics.intervals import Estimate, Form, counted, ratio
from tacit.metrics.planning import EvaluationPlan, refuse_noise
from tacit.privacy import Guarantee
from tacit.queries.evaluation import ABSOLUTE, COUNT, LABEL, LABEL_SQUARE, SQUARE, NumberSums

Array = npt.NDArray[np.float64]


def number_evaluation(
    plan: EvaluationPlan, cells: NumberSums, sums: Array, privacy: Guarantee
) -> Evaluation:
    """Return MSE, RMSE, MAE and R2; refuse where they are but noise."""
    refuse_noise(plan, float(sums[COUNT]))
    noise, w = np.full(5, plan.noise_std), cells.width
    one = Form(_at(COUNT))
    mse = ratio(Form(w * w * _at(SQUARE)), one, sums, noise, 0.0, w * w)
    metrics = {
        "mse": mse,
        "rmse": Estimate(*(math.sqrt(end) for end in (mse.value, mse.low, mse.high))),
        "mae": ratio(Form(w * _at(ABSOLUTE)), one, sums, noise, 0.0, w),
        "r2": r2(sums, noise),
    }
    return Evaluation(privacy, metrics, counted(_at(COUNT), sums, noise), plan.noise_std)


def r2(sums: Array, noise: Array) -> Estimate:
    """Return 1 - residual / total, as scikit-learn's R2.

    residual = w^2 S_rr,  total = (w/2)^2 (S_uu - S_u^2 / n),  so
    1 - R2 = 4 n S_rr / (n S_uu - S_u^2)
    """
    nothing = np.zeros(5)
    residual = Form(nothing, 4 * _product(COUNT, SQUARE))
    total = Form(nothing, _product(COUNT, LABEL_SQUARE) - _product(LABEL, LABEL))
    lost = ratio(residual, total, sums, noise, 0.0, math.inf)
    return Estimate(1 - lost.value, 1 - lost.high, 1 - lost.low)


def _at(place: int) -> Array:
    row: Array = np.eye(5)[place]
    return row


def _product(one: int, other: int) -> Array:
    """Return the symmetric S with x' S x = x_one x_other."""
    square = np.zeros((5, 5))
    square[one, other] += 0.5
    square[other, one] += 0.5
    return square
