"""Symmetric noise on a second moment: its law and its sensitivity."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

from tacit.noise import Release, SensitivityViolation
from tacit.privacy import Relation
from tacit.queries import (
    Facts,
    GaussianNoise,
    NoisySum,
    SecondMoment,
    Sensitivity,
    Session,
    Slot,
)
from tacit.queries.moments import unpack
from tacit.records import Bounds, MemoryRecords
from tacit.testing import replay

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
R = 2.0


def records(rows: Any, **bounds: Any) -> MemoryRecords:
    return MemoryRecords(np.asarray(rows, dtype=float), None, Bounds(row_norm=R, **bounds))


def noisy_moment(rows: Any, multiplier: float, relation: Relation) -> Release[Any]:
    facts = Facts(Bounds(row_norm=R), rows.shape[1], relation)
    query = NoisySum(SecondMoment(), GaussianNoise(multiplier))
    event = query.event(facts)
    session = Session(records(rows), facts, event, {"moment": Slot(event)})
    return session.release(unpack(np.asarray(session.ask(query, "moment")), rows.shape[1]))


@pytest.mark.parametrize(
    ("relation", "gradient_scale"), [(ADD, R**2), (REPLACE, math.sqrt(2) * R**2)]
)
def test_noise_is_symmetric_and_as_stated(relation: Relation, gradient_scale: float) -> None:
    d, z = 200, 3.0
    moment = noisy_moment(np.zeros((4, d)), z, relation).value
    assert np.array_equal(moment, moment.T)
    packed = np.concatenate([np.diag(moment), math.sqrt(2) * moment[np.triu_indices(d, 1)]])
    units = packed / (z * gradient_scale)
    assert kstest(units, ndtr).pvalue > 1e-9

    def off(numbers: Any) -> float:
        """By how many of its standard deviations, sqrt(2 / m), a mean square is not 1."""
        return float(abs(np.mean(numbers**2) - 1) / math.sqrt(2 / numbers.size))

    assert off(units) < 6
    assert off(units[:d]) < 6  # the diagonal, which has twice the variance of the others
    assert min(off(0.9 * units), off(1.1 * units)) > 6


def test_sensitivity_is_reached_and_no_more() -> None:
    base = np.random.default_rng(0).normal(0, 1, (50, 3))
    for relation, others in ((ADD, []), (REPLACE, [[0.0, 9.0, 0.0]])):
        more = np.vstack([base, [[9.0, 0.0, 0.0]]])
        other = np.vstack([base, others]) if others else base
        facts = Facts(Bounds(row_norm=R), 3, relation)
        a, b = (SecondMoment().total(records(rows), facts) for rows in (more, other))
        stated = SecondMoment().sensitivity(facts).value
        assert 0.999 * stated <= np.linalg.norm(a - b) <= stated


def test_a_forgotten_root_of_two_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.random.default_rng(0).normal(0, 1, (50, 3))
    more, other = (np.vstack([base, [row]]) for row in ([9.0, 0.0, 0.0], [0.0, 9.0, 0.0]))

    def run(rows: Any) -> Release[Any]:
        return noisy_moment(rows, 2.0, REPLACE)

    assert replay(run, more, other) == 1

    stated = SecondMoment.sensitivity

    def forgetful(self: SecondMoment, facts: Facts) -> Sensitivity:
        whole = stated(self, facts)
        return replace(whole, value=whole.value / math.sqrt(2))

    monkeypatch.setattr(SecondMoment, "sensitivity", forgetful)
    with pytest.raises(SensitivityViolation):
        replay(run, more, other)


def test_the_constant_carries_the_mean() -> None:
    rows = np.random.default_rng(0).normal(0.2, 0.3, (40, 3))
    facts = Facts(Bounds(row_norm=R, intercept=0.5), 3, ADD)
    moment = unpack(SecondMoment().total(records(rows, intercept=0.5), facts), 4)
    # rows are rounded to 2^-15 of their norm
    np.testing.assert_allclose(moment[:3, :3], rows.T @ rows, rtol=1e-4)
    np.testing.assert_allclose(moment[-1, :3], 0.5 * rows.sum(axis=0), rtol=1e-4)
    assert moment[-1, -1] == pytest.approx(0.25 * 40)
    stated = SecondMoment().sensitivity(facts).value
    assert stated == pytest.approx(R**2 + 0.25, rel=2.0**-19)
