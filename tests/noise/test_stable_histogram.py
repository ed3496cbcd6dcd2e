"""Frequent values: the noise on counts, and how often a value of one record alone appears."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, kstest

from tacit.noise import SensitivityViolation, recording
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.stable_histogram import count_std, frequent, frequent_event, threshold
from tacit.privacy import Gaussian, Guarantee, Relation
from tacit.testing import exact_delta_1d, replay
from tests.noise.helpers import WordSource

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize("leak", [0.2, 1e-3, 1e-7, 1e-12])
def test_counts_of_one_exceed_the_threshold_with_the_stated_probability(leak, k, relation):
    std, least = count_std(3.0, k, relation), threshold(3.0, k, leak, relation)
    spacing = lattice_spacing(std)
    # what is rounded above the threshold was above the middle of two multiples
    each = ndtr(-(least + spacing / 2 - 1) / std)
    together = -math.expm1(k * math.log1p(-each))
    assert 0.98 * leak <= together <= leak


def appears(n, k, leak, relation, noise_multiplier=3.0):
    """How many of n records that have k values each to themselves are betrayed by any of them."""
    counts = {(record, value): 1 for record in range(n) for value in range(k)}
    kept = frequent(counts, k, noise_multiplier, leak, relation).value
    return len({record for record, _ in kept})


def is_leak(found, n, leak):
    tail = min(binom.cdf(found, n, leak), binom.sf(found - 1, n, leak))
    return tail > 1e-7


@pytest.mark.parametrize(("k", "relation"), [(1, ADD), (3, ADD), (2, REPLACE)])
def test_audit_by_counting(k, relation, monkeypatch):
    n, leak = 20_000, 0.2
    assert is_leak(appears(n, k, leak, relation), n, leak)
    # the same audit catches a threshold for noise 10 % smaller, one for a single value, and one
    # that forgets that the value itself counts 1
    for wrong in (
        lambda z, values, p, r: threshold(0.9 * z, values, p, r),
        lambda z, values, p, r: threshold(z, values, p, r) - 0.9,
        *([lambda z, values, p, r: threshold(z, 1, p, r)] if k > 1 else []),
    ):
        monkeypatch.setattr(sys.modules["tacit.noise.stable_histogram"], "threshold", wrong)
        assert not is_leak(appears(n, k, leak, relation), n, leak)
        monkeypatch.undo()


@pytest.mark.parametrize(("k", "relation"), [(1, ADD), (4, ADD), (2, REPLACE)])
def test_noise_on_counts(k, relation):
    counts = dict.fromkeys(range(20_000), 10**6)
    noise = np.array(list(frequent(counts, k, 3.0, 1e-6, relation).value.values())) - 10**6
    assert noise.size == 20_000
    std = 3.0 * math.sqrt(2 * k if relation is REPLACE else k)
    assert kstest(noise / std, ndtr).pvalue > 1e-9
    # the mean square of m normals has standard deviation sqrt(2 / m): 10 % are 20 of them
    off = [abs(np.mean((f * noise / std) ** 2) - 1) / math.sqrt(1e-4) for f in (1.0, 0.9, 1.1)]
    assert off[0] < 6
    assert min(off[1:]) > 6
    spacing = lattice_spacing(count_std(3.0, k, relation))
    assert np.all((noise / spacing) == np.rint(noise / spacing))


def normal(mean, std):
    return lambda x: -(((x - mean) / std) ** 2) / 2 - math.log(std * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("z", [0.7, 2.0])
def test_exact_delta_where_a_value_is_common_and_another_is_new(z):
    """Two columns: one record more adds 1 to a common count, and brings a value of its own.

    The noisy common count x leaves, and the new value with probability q, independent of it.
    """
    leak, k = 1e-2, 2
    promise = Guarantee(frequent_event(z, leak, ADD))
    std, least = count_std(z, k, ADD), threshold(z, k, leak, ADD)
    q = float(ndtr(-(least - 1) / std))
    lone = 0.0
    for epsilon in (0.0, 0.5, 1.0, 2.0, 5.0):
        with_new = q + exact_delta_1d(
            lambda x: normal(1.0, std)(x) + math.log1p(-q), normal(0.0, std), epsilon, (-40, 40)
        )
        assert with_new <= promise.delta(epsilon)
        # Two new values, nothing in common.
        both = 1 - (1 - q) ** 2
        assert both <= promise.delta(epsilon)
        lone = both / Guarantee(Gaussian(z)).delta(epsilon)
    assert lone > 1  # noise alone would not have been paid for


def test_a_replaced_record_moves_two_counts():
    z = 2.0
    std = count_std(z, 1, REPLACE)
    promise = Guarantee(frequent_event(z, 1e-9, REPLACE))
    # along the difference of the two counts, which is sqrt 2 long
    exact = exact_delta_1d(normal(math.sqrt(2), std), normal(0.0, std), 0.5, (-30, 30))
    assert 0.99 * promise.delta(0.5) <= exact <= 1.0001 * promise.delta(0.5)
    forgotten = std / math.sqrt(2)
    worse = exact_delta_1d(normal(math.sqrt(2), forgotten), normal(0.0, forgotten), 0.5, (-30, 30))
    assert worse > 1.2 * promise.delta(0.5)


def test_replay_sees_a_record_that_counts_too_often():
    def run(counts):
        return frequent(counts, 1, 2.0, 0.3, ADD)

    base = {"a": 50, "b": 20}
    for neighbour in ({"a": 51, "b": 20}, {"a": 49, "b": 20}, {"a": 50, "b": 20, "new": 1}):
        for _ in range(5):
            assert replay(run, base, neighbour) == 1
            assert replay(run, neighbour, base) == 1
    with pytest.raises(SensitivityViolation):
        replay(run, base, {"a": 52, "b": 20})
    with pytest.raises(SensitivityViolation):
        replay(run, base, {"a": 50, "b": 20, **dict.fromkeys("cdefghijklmnop", 50)})


def test_nothing_to_count():
    with recording() as tape:
        assert frequent({}, 1, 2.0, 1e-6, ADD).value == {}
    assert len(tape.entries) == 1


@pytest.mark.parametrize(("k", "z", "leak"), [(0, 1.0, 0.1), (1, 0.0, 0.1), (1, 1.0, 0.0)])
def test_wrong_arguments(k, z, leak):
    with pytest.raises(ValueError):
        frequent({"a": 1}, k, z, leak, ADD)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_the_noise_is_rounded_up(relation):
    for k in range(1, 30):
        moved = k * (2 if relation is REPLACE else 1)
        std = Fraction(count_std(0.1 * k, k, relation))
        square = Fraction(0.1 * k) ** 2 * moved
        assert square < std**2 < square * (1 + Fraction(1, 2**49))


def test_a_count_at_the_threshold_itself_is_not_told():
    # What is rounded to the threshold may have been half a step below it, and then is likelier.
    std, least = count_std(3.0, 1, ADD), threshold(3.0, 1, 1e-3, ADD)
    spacing = lattice_spacing(std)
    for steps, told in ((0, False), (1, True)):
        # the word of noise that takes a count of 1 to the middle of its multiple
        word = int(ndtr(-(least + steps * spacing - 1.0) / std) * 2.0**64)
        kept = frequent({"one": 1}, 1, 3.0, 1e-3, ADD, WordSource([word])).value
        assert kept == ({"one": least + spacing} if told else {})


def test_a_leak_close_to_one_is_not_passed():
    # Half a step of the lattice is little there, where _DOWN is what covers the rounding.
    leak = 1.0 - 2.0**-40
    std, least = count_std(3.0, 1, ADD), threshold(3.0, 1, leak, ADD)
    assert ndtr((least + lattice_spacing(std) / 2 - 1.0) / std) >= 2.0**-40
