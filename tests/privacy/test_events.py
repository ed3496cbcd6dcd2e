from __future__ import annotations

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.privacy import (
    Budget,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    Guarantee,
    LinearModelObjective,
    LogisticObjective,
    NonPrivate,
    PureEpsilon,
    Relation,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
    event_from_dict,
)
from tacit.privacy.accounting.number_of_trials import TruncatedNegativeBinomial
from tacit.testing import check_event

from .families import FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_every_event_passes_the_conformance_suite(name: str) -> None:
    check_event(FAMILIES[name])


def test_jacobian_remains_at_infinite_noise() -> None:
    # 3.4 d with weak regularization: (1 - 1/K) R^2 / lam is left
    check_event(
        lambda z: SoftmaxObjective(1.0, 10, 2.0, z),
        noises=(2.0, 8.0, 32.0),
        cost_at_infinite_noise=0.9 / 2.0,
    )


@pytest.mark.parametrize("multiplier", [0.4, 1.0, 3.0])
def test_a_sample_of_everybody_is_no_sample(multiplier: float) -> None:
    orders = np.array([1.1, 2.0, 7.5, 60.0])
    sampled, alone = SampledGaussian(multiplier, 1.0), Gaussian(multiplier)
    assert sampled.gaussian_mu() == alone.gaussian_mu() == 1 / multiplier
    np.testing.assert_allclose(sampled.renyi(orders), orders / (2 * multiplier**2), rtol=1e-15)
    np.testing.assert_allclose(alone.renyi(orders), orders / (2 * multiplier**2), rtol=1e-15)
    for epsilon in (0.0, 1.0):
        assert Guarantee(sampled).delta(epsilon) == Guarantee(alone).delta(epsilon)


def test_counts_that_floats_do_not_hold_are_refused() -> None:
    both = Composed((Gaussian(1.0), Repeated(Gaussian(2.0), 2**30)))
    assert list(Repeated(both, 2**23).leaves())[1][1] == 2**53
    with pytest.raises(ValueError, match="releases of one kind"):
        Repeated(both, 2**23 + 1)


class DropsCounts(PureEpsilon):
    """A mutant: its leaves forget how often they happened."""

    def leaves(self):  # type: ignore[no-untyped-def]
        yield PureEpsilon(self.epsilon), 1


class ForgetfulRepeat(Repeated):
    def leaves(self):  # type: ignore[no-untyped-def]
        yield from self.event.leaves()


def test_suite_catches_a_dropped_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Repeated, "leaves", ForgetfulRepeat.leaves)
    with pytest.raises(AssertionError, match="Repeated costs"):
        check_event(Gaussian)


def test_suite_catches_a_cost_that_grows_with_noise() -> None:
    with pytest.raises(AssertionError, match="does not fall"):
        check_event(lambda z: Gaussian(10 / z))


@st.composite
def events(draw: st.DrawFn) -> Event:
    noise = draw(st.floats(0.3, 30.0))
    leaf = FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))](noise)
    shape = draw(st.integers(0, 2))
    if shape == 1:
        return Repeated(leaf, draw(st.integers(1, 5)))
    if shape == 2:
        return Composed((leaf, Repeated(leaf, draw(st.integers(1, 3)))))
    return leaf


@settings(max_examples=60, deadline=None)
@given(event=events(), exponent=st.floats(-12, -2), factor=st.floats(1.05, 5.0))
def test_properties_of_any_event(event: Event, exponent: float, factor: float) -> None:
    delta = 10.0**exponent
    promise = Guarantee(event, delta)
    epsilon = promise.epsilon(delta)
    assert 0.0 <= epsilon < math.inf
    assert promise.delta(epsilon) <= delta * (1 + 1e-6)
    assert promise.epsilon(min(delta * factor, 0.5)) <= epsilon + 1e-12
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    again = Guarantee.from_json(promise.to_json())
    assert again == promise
    assert again.epsilon(delta) == epsilon
    # adding any release never lowers the cost
    more = Guarantee(Composed((event, Gaussian(5.0, event.relation))))
    assert more.epsilon(delta) >= epsilon * (1 - 1e-3)


def test_exponential_mechanism_is_cheaper_than_generic_pure() -> None:
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    for epsilon in (0.01, 0.5, 2.0, 10.0):
        choice, pure = ExponentialMechanism(epsilon), PureEpsilon(epsilon)
        assert np.all(choice.renyi(orders) <= pure.renyi(orders) + 1e-12)
        assert np.all(choice.renyi(orders) <= orders * epsilon**2 / 8 + 1e-15)
    # a quarter of the zCDP cost when small: nearly half the epsilon after many
    many = Guarantee(Repeated(ExponentialMechanism(0.01), 1000)).epsilon(1e-6)
    generic = Guarantee(Repeated(PureEpsilon(0.01), 1000)).epsilon(1e-6)
    assert many < 0.56 * generic


def test_exponential_mechanism_bounds_brute_force_pairs() -> None:
    # any two-outcome pair with losses t and t - eta is below the profile, and one reaches it
    eta = 1.3
    event = ExponentialMechanism(eta)
    for epsilon in (-0.7, 0.0, 0.4, 1.1):
        t = np.linspace(1e-6, eta - 1e-6, 20001)
        p = (np.exp(eta) - np.exp(t)) / np.expm1(eta)
        losses = np.stack([t, t - eta])
        masses = np.stack([p, 1 - p])
        exact = np.sum(masses * np.maximum(1 - np.exp(epsilon - losses), 0), axis=0)
        claimed = event.profile(np.array([epsilon]))[0]
        assert exact.max() <= claimed + 1e-12
        assert exact.max() >= claimed - 1e-6
        order = 3.0
        divergence = np.log(np.sum(masses * np.exp((order - 1) * losses), axis=0)) / (order - 1)
        assert divergence.max() == pytest.approx(event.renyi(np.array([order]))[0], rel=1e-6)


def test_non_private_costs_everything_and_says_why() -> None:
    hidden = Composed((Gaussian(100.0), Repeated(NonPrivate("classes read from the data"), 2)))
    promise = Guarantee(hidden)
    assert promise.epsilon(1e-5) == math.inf
    assert promise.delta(10.0) == 1.0
    assert "classes read from the data" in promise.statement()
    assert not promise.within(1e9, 0.5)
    assert promise.within(math.inf, 0.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Gaussian(0.0), "NonPrivate"),
        (lambda: Gaussian(-1.0), "positive"),
        (lambda: Gaussian(math.nan), "got nan"),
        (lambda: Gaussian(math.inf), "finite"),
        (lambda: PureEpsilon(0.0), "positive"),
        (lambda: SampledGaussian(1.0, 0.0), "sampling_rate"),
        (lambda: SampledGaussian(1.0, 1.5), "expected batch size"),
        (lambda: SampledGaussian(1.0, 0.1, Relation.REPLACE), "replace_from_add_remove"),
        (lambda: LogisticObjective(1.0, 0.0, 1.0), "regularization"),
        (lambda: LinearModelObjective(1.0, 1.0, 1.0, 1.0, Relation.REPLACE), "ADD_REMOVE"),
        (lambda: SoftmaxObjective(1.0, 1, 1.0, 1.0), "n_classes"),
        (lambda: Repeated(Gaussian(1.0), 0), "at least 1"),
        (lambda: Composed(()), "at least one"),
        (lambda: NonPrivate(" "), "reason"),
        (lambda: Composed((Gaussian(1.0), Gaussian(1.0, Relation.REPLACE))), "one relation"),
        (lambda: Budget(0.0), "above 0"),
        (lambda: Budget(-1.0), "above 0"),
        (lambda: Budget(math.nan), "NaN"),
        (lambda: Budget(1.0, 1.0), "delta"),
        (lambda: Budget(1.0, -1e-9), "delta"),
        (lambda: Guarantee(Gaussian(1.0)).epsilon(1.0), "delta"),
        (lambda: Guarantee(Gaussian(1.0)).delta(-1.0), "at least 0"),
        (lambda: event_from_dict({"kind": "nonsense", "version": 1}), "version of tacit"),
        (lambda: event_from_dict({**Gaussian(1.0).to_dict(), "version": 99}), "unknown event"),
        (lambda: Guarantee.from_json('{"format": "other"}'), "to_json"),
    ],
)
def test_nonsense_is_refused_with_a_remedy(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian("1"),  # type: ignore[arg-type]
        lambda: Gaussian(True),
        lambda: Gaussian(1.0, "add_remove"),  # type: ignore[arg-type]
        lambda: Repeated(Gaussian(1.0), 1.5),  # type: ignore[arg-type]
        lambda: Repeated(3, 1),  # type: ignore[arg-type]
        lambda: Composed((1,)),  # type: ignore[arg-type]
        lambda: Budget("1"),  # type: ignore[arg-type]
        lambda: Guarantee(1.0),  # type: ignore[arg-type]
    ],
)
def test_wrong_types_are_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TypeError):
        make()


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float16, np.float32, np.int64])
def test_numbers_of_narrow_types_cost_what_floats_do(kind: type) -> None:
    # 16 squared is 0 in eight bits, and half precision has three digits
    for make in (
        Gaussian,
        lambda x: LogisticObjective(x, 100.0, 50.0),
        lambda x: SoftmaxObjective(x, 3, 100.0, 50.0),
        lambda x: LinearModelObjective(x, x, x, x),
        PureEpsilon,
    ):
        narrow, usual = make(kind(16)), make(16.0)
        assert narrow == usual
        assert json.dumps(narrow.to_dict())
        assert Guarantee(narrow).epsilon(1e-6) == Guarantee(usual).epsilon(1e-6)
    law = TruncatedNegativeBinomial(kind(1), 0.1)
    assert law.slope(np.zeros(1)) == TruncatedNegativeBinomial(1.0, 0.1).slope(np.zeros(1))
    assert json.dumps(law.to_dict())


def test_kinds_are_of_the_first_version() -> None:
    """What files hold: another meaning of a kind would be another version."""
    assert Gaussian(2.0).to_dict()["version"] == 1
    recorded = {"kind": "pure_epsilon", "version": 1, "epsilon": 0.5, "relation": "add_remove"}
    assert event_from_dict(recorded) == PureEpsilon(0.5)


@pytest.mark.parametrize("order", [2, 3, 5, 8])
def test_the_divergence_of_a_sample_is_not_understated(order: int) -> None:
    for rate, noise in itertools.product((1e-3, 0.1, 0.3, 0.5, 0.9), (0.5, 1.0, 4.0, 30.0)):
        with mpmath.workdps(50):
            q, z = mpmath.mpf(rate), mpmath.mpf(noise)
            total = sum(
                mpmath.binomial(order, k)
                * q**k
                * (1 - q) ** (order - k)
                * mpmath.exp(k * (k - 1) / (2 * z**2))
                for k in range(order + 1)
            )
            found = SampledGaussian(noise, rate).renyi(np.array([float(order)]))[0]
            assert 0 <= mpmath.mpf(found) * (order - 1) - mpmath.log(total) < 1e-13
