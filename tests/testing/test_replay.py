from __future__ import annotations

import numpy as np
import pytest

from tacit.noise import Norm, ReplayMismatch, SensitivityViolation, secure_source
from tacit.noise.bounded import Bounded
from tacit.noise.gaussian import gaussian
from tacit.noise.release import decide
from tacit.privacy import Relation
from tacit.testing import replay

AGES = [20.0, 50.0, 31.0]
MORE = [*AGES, 1000.0]


def release(value: float, sensitivity: float = 100.0):  # type: ignore[no-untyped-def]
    return gaussian(Bounded(value, sensitivity, Norm.L2, Relation.ADD_REMOVE), 1.0).value


def clipped_total(ages: list[float]) -> float:
    return float(np.minimum(ages, 100.0).sum())


def test_sound_fit_passes_and_counts_its_releases() -> None:
    def fit(ages: list[float]) -> None:
        total = release(clipped_total(ages))
        decide("second look", total > 0)
        release(clipped_total(ages) * 2, 200.0)

    assert replay(fit, AGES, MORE) == 2
    assert replay(fit, MORE, AGES) == 2


def test_clip_then_use_the_raw_values_is_caught() -> None:
    with pytest.raises(SensitivityViolation, match="100"):
        replay(lambda ages: release(float(np.sum(ages))), AGES, MORE)


def test_halved_sensitivity_is_caught() -> None:
    with pytest.raises(SensitivityViolation):
        replay(lambda ages: release(clipped_total(ages), 50.0), AGES, MORE)


def test_sensitivity_read_off_the_data_is_caught() -> None:
    with pytest.raises(ReplayMismatch):
        replay(lambda ages: release(float(np.sum(ages)), float(np.max(ages))), AGES, MORE)


def test_number_of_releases_that_depends_on_data_is_caught() -> None:
    def fit(ages: list[float]) -> None:
        for _ in range(len(ages)):
            release(clipped_total(ages))

    with pytest.raises(ReplayMismatch):
        replay(fit, AGES, MORE)
    with pytest.raises(ReplayMismatch):
        replay(fit, MORE, AGES)


def test_decision_that_depends_on_data_is_caught() -> None:
    def fit(ages: list[float]) -> None:
        release(clipped_total(ages))
        decide("number of steps", len(ages))

    with pytest.raises(ReplayMismatch, match="number of steps"):
        replay(fit, AGES, MORE)


def test_decision_that_depends_on_a_release_passes() -> None:
    def fit(ages: list[float]) -> None:
        decide("number of steps", int(release(clipped_total(ages)) // 10))

    assert replay(fit, AGES, MORE) == 1


def test_a_fit_that_releases_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="nothing to compare"):
        replay(lambda ages: secure_source().words(3), AGES, MORE)
