from __future__ import annotations

import dataclasses
import math

import pytest

from tacit.report import AccuracyPicture, AccuracyPoint, ReportFacts
from tacit.report.facts import Coefficient
from tests.report.helpers import PROMISE


def test_facts_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ReportFacts("a", PROMISE).title = "b"  # type: ignore[misc]


def test_scores_need_somebody_who_vouches_for_them() -> None:
    point = AccuracyPoint("noisy_gradient", 1.0, 0.8)
    with pytest.raises(ValueError, match="why_public"):
        AccuracyPicture((point,), " ")
    with pytest.raises(ValueError, match="points"):
        AccuracyPicture((), "Published.")
    with pytest.raises(ValueError, match="floor"):
        AccuracyPicture((point,), "Published.", floor=math.nan)


@pytest.mark.parametrize(
    ("epsilon", "mean", "sd"), [(math.inf, 0.8, 0.0), (0.0, 0.8, 0.0), (1, math.nan, 0), (1, 1, -1)]
)
def test_points_that_cannot_be_drawn(epsilon: float, mean: float, sd: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        AccuracyPoint("noisy_gradient", epsilon, mean, sd)


def test_errors_are_sizes() -> None:
    with pytest.raises(ValueError, match="error"):
        Coefficient("a", 1.0, -1.0)
