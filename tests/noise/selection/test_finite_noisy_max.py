"""Winners of votes: the right law, and no other; nothing but the winner leaves."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from tacit.noise import Norm, SensitivityViolation, recording, replaying, seeded_source
from tacit.noise.selection.finite import (
    gaussian_above,
    gaussian_majorities,
    gaussian_winners,
    laplace_winners,
)
from tacit.privacy import Gaussian, NoisyMajority, NonPrivate, PureEpsilon, Relation, Repeated
from tests.pate.exact import gaussian_winner, laplace_winner

ADD = Relation.ADD_REMOVE
N = 100_000
ROOT_TWO = math.sqrt(2.0)
# A vote that changes sides moves two counts by one.
WINNERS = (
    partial(gaussian_winners, sensitivity=ROOT_TWO),
    partial(laplace_winners, sensitivity=2.0),
)


def far(share: float, expected: float) -> float:
    """Return how many standard deviations a share is from what it should be."""
    return abs(share - expected) / math.sqrt(expected * (1 - expected) / N)


def test_gaussian_winners_follow_their_law() -> None:
    votes = (5, 4, 2)
    won = gaussian_winners(
        np.tile(np.array(votes, float), (N, 1)), 2.0, ADD, sensitivity=ROOT_TWO
    ).value
    share = np.bincount(won, minlength=3) / N
    for i in range(3):
        assert far(share[i], gaussian_winner(votes, 2.0)[i]) < 6.2
    for factor in (0.9, 1.1):
        assert far(share[0], gaussian_winner(votes, 2.0 * factor)[0]) > 8


def test_laplace_winners_follow_their_law() -> None:
    votes = (5, 4, 2)
    won = laplace_winners(np.tile(np.array(votes, float), (N, 1)), 0.5, ADD, sensitivity=2.0).value
    share = np.bincount(won, minlength=3) / N
    assert far(share[0], laplace_winner(votes, 0.5)[0]) < 6.2
    for factor in (0.9, 1.1):
        assert far(share[0], laplace_winner(votes, 0.5 * factor)[0]) > 6.2


def test_majorities_and_thresholds_follow_their_laws() -> None:
    won = gaussian_majorities(np.full(N, 3.0), 2.0, ADD, sensitivity=2.0).value
    above = gaussian_above(np.full(N, 11.0), 9.0, 2.0, ADD, sensitivity=1.0).value
    for share, std in ((np.mean(won), math.sqrt(2) * 2.0 / 3.0), (np.mean(above), 1.0)):
        assert far(float(share), float(ndtr(1 / std))) < 6.5  # the lattice moves it by 1e-4
        for factor in (0.9, 1.1):
            assert far(float(share), float(ndtr(1 / (std * factor)))) > 8


def test_events() -> None:
    votes, each = np.ones((7, 3)), Gaussian(2.0 / ROOT_TWO)
    winners, pure = WINNERS
    assert winners(votes, 2.0, ADD).event == Repeated(each, 7)
    assert winners(votes, 2.0, ADD, n_charged=9).event == Repeated(each, 9)
    assert pure(votes, 0.25, ADD).event == Repeated(PureEpsilon(0.5), 7)
    won = gaussian_majorities(np.ones(4), 3.0, ADD, sensitivity=2.0)
    assert won.event == Repeated(NoisyMajority(3.0), 4)
    above = gaussian_above(np.ones(4), 0.0, 3.0, ADD, sensitivity=1.0)
    assert above.event == Repeated(Gaussian(3.0), 4)
    assert isinstance(winners(votes, 2.0, ADD, seeded_source(1)).event, NonPrivate)
    with pytest.raises(ValueError, match="n_charged"):
        winners(votes, 2.0, ADD, n_charged=6)


def test_who_moves_twice_as_much_costs_twice_as_much() -> None:
    votes = np.ones((4, 3))
    assert gaussian_winners(votes, 4.0, ADD, sensitivity=2.0).event == Repeated(Gaussian(2.0), 4)
    assert laplace_winners(votes, 0.5, ADD, sensitivity=4.0).event == Repeated(PureEpsilon(2.0), 4)
    won = gaussian_majorities(np.ones(4), 3.0, ADD, sensitivity=4.0)
    assert won.event == Repeated(NoisyMajority(1.5), 4)
    above = gaussian_above(np.ones(4), 0.0, 3.0, ADD, sensitivity=2.0)
    assert above.event == Repeated(Gaussian(1.5), 4)
    with recording() as tape:
        gaussian_majorities(np.ones(9), 2.0, ADD, sensitivity=4.0)
        gaussian_above(np.ones(9), 0.0, 2.0, ADD, sensitivity=2.0)
    found = [entry.bounded.sensitivity for entry in tape.entries]  # type: ignore[union-attr]
    np.testing.assert_allclose(found, [12.0, 6.0])


def test_a_teacher_moves_each_query_by_its_sensitivity_and_no_more() -> None:
    before = np.array([[5.0, 3.0, 0.0], [2.0, 2.0, 4.0]])
    one = before + np.array([[-1.0, 1.0, 0.0], [0.0, 1.0, -1.0]])
    two = before + np.array([[-2.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    for release in WINNERS:
        with recording() as tape:
            first = release(before, 2.0, ADD).value
        with replaying(tape):
            np.testing.assert_array_equal(release(one, 2.0, ADD).value, first)
        with pytest.raises(SensitivityViolation), replaying(tape):
            release(two, 2.0, ADD)


def test_the_sensitivity_is_that_of_all_queries() -> None:
    with recording() as tape:
        gaussian_winners(np.ones((8, 3)), 2.0, ADD, sensitivity=ROOT_TWO)
        laplace_winners(np.ones((8, 3)), 2.0, ADD, sensitivity=2.0)
        gaussian_majorities(np.ones(9), 2.0, ADD, sensitivity=2.0)
    bounds = [entry.bounded for entry in tape.entries]  # type: ignore[union-attr]
    assert [b.norm for b in bounds] == [Norm.L2, Norm.L1, Norm.L2]
    np.testing.assert_allclose([b.sensitivity for b in bounds], [4.0, 16.0, 6.0])


@pytest.mark.parametrize("std", [0.0, -1.0, math.nan, math.inf])
def test_no_noise_is_refused(std: float) -> None:
    for release in WINNERS:
        with pytest.raises(ValueError, match=r"noise_std|gamma"):
            release(np.ones((1, 2)), std, ADD)


def test_noise_covers_what_its_event_says(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[Fraction] = []

    def add(value: Any, width: float, *rest: Any) -> Any:
        widths.append(Fraction(width))
        return np.zeros_like(value)

    monkeypatch.setattr(sys.modules["tacit.noise.selection.finite"], "add_rounded", add)
    # sqrt(2) as a double is too large, by less than a product of it may be too small (k = 57)
    for k in range(1, 80):
        std = 0.1 * k
        winners: Any = gaussian_winners(np.zeros((1, 2)), std, ADD, sensitivity=ROOT_TWO).event
        # sqrt(2) multipliers: squares, since the root is no fraction
        assert widths.pop() ** 2 >= 2 * Fraction(winners.event.noise_multiplier) ** 2
        gaussian_majorities(np.zeros(1), std, ADD, sensitivity=2.0)
        assert widths.pop() ** 2 >= 2 * Fraction(std) ** 2
        laplace_winners(np.zeros((1, 2)), std, ADD, sensitivity=2.0)
        assert widths.pop() >= 1 / Fraction(std)
        gaussian_above(np.zeros(1), 0.0, std, ADD, sensitivity=1.0)
        assert widths.pop() >= Fraction(std)
