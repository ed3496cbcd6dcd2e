import math
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.noise import Norm, secure_source, seeded_source
from tacit.noise.exact.interval_arithmetic import exponential_errors, exponentials
from tacit.noise.selection import finite
from tacit.noise.selection.finite import check_utilities, gumbel_max, select
from tacit.privacy import ExponentialMechanism, NonPrivate, Relation
from tests.noise.helpers import ACCEPT, REJECT, WordSource, bounded

UTILITIES = np.array([0.0, 1.0, 2.5, -3.0, 2.5, 0.3])


def _frequencies(utilities, epsilon, sensitivity, monotone=False, n=20_000):
    source = secure_source()
    value = bounded(utilities, sensitivity, Norm.LINF)
    chosen = [select(value, epsilon, monotone=monotone, source=source).value for _ in range(n)]
    return np.bincount(chosen, minlength=utilities.size)


def _probabilities(utilities, rate):
    weights = np.exp(rate * (utilities - utilities.max()))
    return weights / weights.sum()


@pytest.mark.parametrize("monotone", [False, True])
def test_frequencies_are_those_of_the_exponential_mechanism(monotone):
    epsilon, sensitivity = 1.6, 2.0
    rate = epsilon / sensitivity * (1.0 if monotone else 0.5)
    counts = _frequencies(UTILITIES, epsilon, sensitivity, monotone)
    expected = counts.sum() * _probabilities(UTILITIES, rate)
    assert chisquare(counts, expected).pvalue > ACCEPT
    for wrong in (0.8, 1.2):
        off = counts.sum() * _probabilities(UTILITIES, rate * wrong)
        assert chisquare(counts, off).pvalue < REJECT


def test_an_offset_changes_nothing():
    counts = _frequencies(UTILITIES + 2.0**40, 2.0, 1.0)
    assert chisquare(counts, counts.sum() * _probabilities(UTILITIES, 1.0)).pvalue > ACCEPT


@pytest.mark.parametrize("n", [2, 3, 50])
def test_the_exact_race_agrees_with_floats(n, monkeypatch):
    rng = np.random.default_rng()
    for _ in range(30):
        words = secure_source().words(n)
        value = bounded(rng.standard_normal(n), 1.0, Norm.LINF)
        fast = select(value, 1.0, source=WordSource(words, secure_source())).value
        with monkeypatch.context() as patch:
            patch.setattr(finite, "_LOG_MARGIN", 1e9)
            slow = select(value, 1.0, source=WordSource(words, secure_source())).value
        assert fast == slow


def test_equal_words_are_told_apart_by_further_bits():
    value = bounded(np.zeros(2), 1.0, Norm.LINF)
    seen = {
        select(value, 1.0, source=WordSource([12345 << 40] * 2, seeded_source(s))).value
        for s in range(20)
    }
    assert seen == {0, 1}


@pytest.mark.parametrize("words", [[0, 0, 0], [2**64 - 1] * 3, [0, 2**64 - 1, 2**63]])
def test_extreme_words(words):
    value = bounded(np.array([0.0, 1.0, 2.0]), 1.0, Norm.LINF)
    assert select(value, 1.0, source=WordSource(words, seeded_source(0))).value in (0, 1, 2)


def test_utilities_too_large_for_floats():
    value = bounded(np.array([0.0, 2.0**490, 2.0**489]), 2.0**-400, Norm.LINF)
    assert select(value, 2.0**300).value == 1


def test_rates_are_exact():
    def rate(monotone):
        return check_utilities(bounded(UTILITIES, 0.3, Norm.LINF), 1.7, monotone, "select")

    assert rate(monotone=True) == Fraction(1.7) / Fraction(0.3)
    assert rate(monotone=False) == Fraction(1.7) / Fraction(0.3) / 2


def test_the_error_of_scaled_utilities_covers_the_largest(monkeypatch):
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        finite, "gumbel_max", lambda floats, **how: seen.update(how, floats=floats) or 0
    )
    select(bounded(np.array([1.0, -(2.0**20), 3.0]), 1.0, Norm.LINF), 4.0)
    assert seen["floats"].tolist() == [2.0, -(2.0**21), 6.0]
    assert seen["error"] == 2.0**-50 * 2.0**21


@pytest.mark.parametrize("level", [0.0, 2.0**30, -(2.0**30)])
@pytest.mark.parametrize("error", [0.0, 2.0**-10])
# Usual energies; a small one, of which little is known; one of a far tail.
@pytest.mark.parametrize("word", [2**62 + 12345, 2**26, 2**64 - 2**30])
def test_what_floats_cannot_tell_apart_is_raced(level, error, word, monkeypatch):
    races = []
    monkeypatch.setattr(finite, "_race", lambda race, source: races.append(len(race)) or 0)
    words, unknown = np.array([2**61, word], dtype=np.uint64), mock.Mock()
    energy = exponentials(words)
    relative = exponential_errors(words, energy) / energy
    margin = 2.0 * relative + (error + 2.0**-38 + 2.0**-50 * abs(level))
    for share, raced in ((0.7, 1), (1.4, 0)):
        # the second is below the first by so much of both margins
        second = level + (np.log(energy[1]) - np.log(energy[0])) - share * margin.sum()
        gumbel_max(np.array([level, second]), error, unknown, WordSource(words))
        assert len(races) == raced
        races.clear()


def test_one_candidate():
    assert select(bounded(np.array([3.0]), norm=Norm.LINF), 1.0).value == 0


def test_events():
    value = bounded(UTILITIES, 1.0, Norm.LINF, Relation.REPLACE)
    assert select(value, 0.5).event == ExponentialMechanism(0.5, Relation.REPLACE)
    seeded = select(value, 0.5, source=seeded_source(0)).event
    assert isinstance(seeded, NonPrivate)


def test_refusals():
    with pytest.raises(ValueError, match=r"select needs .*Norm\.LINF"):
        select(bounded(UTILITIES, norm=Norm.L2), 1.0)
    with pytest.raises(ValueError, match="monotone=False"):
        select(bounded(UTILITIES, 1.0, Norm.LINF, Relation.REPLACE), 1.0, monotone=True)
    with pytest.raises(TypeError, match="monotone must be"):
        select(bounded(UTILITIES, 1.0, Norm.LINF), 1.0, monotone="yes")
    with pytest.raises(ValueError, match="flatten"):
        select(bounded(np.zeros((2, 2)), norm=Norm.LINF), 1.0)
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            select(bounded(UTILITIES, norm=Norm.LINF), epsilon)
