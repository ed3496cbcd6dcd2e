"""The best of K against what an adversarial score really achieves, computed by integration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from tacit.privacy import (
    BestOf,
    Composed,
    Event,
    Gaussian,
    Guarantee,
    LogisticObjective,
    OneOf,
    PureEpsilon,
    Repeated,
    SampledGaussian,
    ZeroConcentrated,
)
from tacit.privacy.accounting.best_of import _edges, mixture, points, renyi
from tacit.privacy.accounting.number_of_trials import (
    Capped,
    FixedTries,
    Poisson,
    TriesLaw,
    TruncatedNegativeBinomial,
    law_from_dict,
)
from tacit.privacy.accounting.root_finding import decreasing_root
from tacit.privacy.accounting.tradeoff import (
    GaussianPower,
    RenyiPower,
    TabulatedPower,
    _hull_at,
    powers_of,
    pure_power,
)

Array = npt.NDArray[np.float64]
DELTA = 1e-5

# law, the bound of the design page, what the attack reaches there: mu = 0.5, delta = 1e-5
PINS = [
    (TruncatedNegativeBinomial(1.0, 0.1), 3.010, 2.997),
    (TruncatedNegativeBinomial(0.0, 0.01), 3.079, 3.069),
    (TruncatedNegativeBinomial(0.5, 0.05), 3.012, 3.001),
    (Poisson(10.0), 3.844, 3.811),
]
LAWS = [law for law, _, _ in PINS] + [
    Capped(TruncatedNegativeBinomial(1.0, 0.1), 30),
    FixedTries(10),
]


def attack_delta(
    law: TriesLaw, densities: tuple[Array, Array], weights: Array, epsilon: float, first: int
) -> float:
    """Return delta of a score that likes the first cells best, and the others from the far end on.

    Cells of outputs have masses q and q' and are in order of falling q' / q. The score puts the
    first ``first`` cells on top; the rest come from the last cell, which favours q most, upwards.
    """
    q, other = densities
    order = np.concatenate([np.arange(first), np.arange(q.size - 1, first - 1, -1)])
    q, other = q[order] * weights[order], other[order] * weights[order]
    # to the middle of a cell: its own runs are ranked among themselves at random
    p = np.cumsum(q) - q / 2
    p_other = np.cumsum(other) - other / 2
    released = q * law.slope(np.clip(p, 0, 1))
    elsewhere = other * law.slope(np.clip(p_other, 0, 1))
    return float(np.maximum(released - np.exp(epsilon) * elsewhere, 0.0).sum())


def attack_epsilon(
    law: TriesLaw,
    q: Callable[[Array], Array],
    other: Callable[[Array], Array],
    *,
    rising: bool,
    delta: float = DELTA,
) -> float:
    """Return the epsilon that the best of many such scores reaches; q' / q rises in y, or falls."""
    y = np.linspace(-9.0, 9.0, 8_001)
    if rising:
        y = y[::-1]
    densities = q(y), other(y)
    weights = np.full(y.size, abs(y[1] - y[0]))

    def reached(first: int) -> float:
        def log_excess(e: float) -> float:
            found = attack_delta(law, densities, weights, e, first)
            return float(np.log(max(found, 1e-300) / delta))

        return decreasing_root(log_excess, 3.0, 1e-4, 0.2)

    # any score is an attack: the best at one epsilon is nearly so at those around
    firsts, epsilon = np.linspace(0, y.size * 0.9, 91).astype(int), 3.0
    for _ in range(2):
        deltas = [attack_delta(law, densities, weights, epsilon, k) for k in firsts]
        epsilon = reached(int(firsts[np.argmax(deltas)]))
    return epsilon


def gaussian_attack(law: TriesLaw, mu: float) -> float:
    return attack_epsilon(law, norm.pdf, lambda y: norm.pdf(y - mu), rising=True)


@pytest.mark.parametrize(("law", "bound", "attack"), PINS, ids=str)
def test_pins(law: TriesLaw, bound: float, attack: float) -> None:
    epsilon = Guarantee(BestOf(Gaussian(2.0), law)).epsilon(DELTA)
    assert attack < epsilon <= bound * 1.0005


def test_a_fixed_number_of_tries_costs_twice_as_much() -> None:
    # so that code which drew a fixed K would have to pay it; that K is of its law is tested in
    # tests/noise/selection/test_finite_tries.py
    epsilon = Guarantee(BestOf(Gaussian(2.0), FixedTries(10))).epsilon(DELTA)
    assert epsilon == pytest.approx(6.797, rel=0.001)


@pytest.mark.parametrize("law", [PINS[0][0], PINS[3][0]], ids=str)
def test_the_attack_comes_close_and_stays_below(law: TriesLaw) -> None:
    bound = Guarantee(BestOf(Gaussian(2.0), law)).epsilon(DELTA)
    attack = gaussian_attack(law, 0.5)
    assert 0.97 * bound <= attack <= bound
    # nine tenths of the noise would be noticed
    assert gaussian_attack(law, 0.5 / 0.9) > bound


@pytest.mark.slow
@pytest.mark.parametrize(("law", "bound", "attack"), PINS, ids=str)
def test_the_attack_is_that_of_the_design_page(law: TriesLaw, bound: float, attack: float) -> None:
    assert gaussian_attack(law, 0.5) == pytest.approx(attack, abs=0.004)


def _sampled(rate: float, z: float) -> Callable[[Array], Array]:
    return lambda y: (1 - rate) * norm.pdf(y, scale=z) + rate * norm.pdf(y - 1, scale=z)


def test_both_orders_count() -> None:
    law, rate, z = TruncatedNegativeBinomial(1.0, 0.1), 0.3, 1.0
    base = SampledGaussian(z, rate)
    mixed, plain = _sampled(rate, z), _sampled(0.0, z)
    with_record = attack_epsilon(law, mixed, plain, rising=False)
    without = attack_epsilon(law, plain, mixed, rising=True)
    bound = Guarantee(BestOf(base, law)).epsilon(DELTA)
    assert 0.95 * bound <= max(with_record, without) <= bound
    # one order alone promises less than the other order's attack reaches
    alone = _each_order(base, law, DELTA)
    assert alone[1] < alone[0]
    assert alone[1] < max(with_record, without)


def test_either_order_may_be_the_worse() -> None:
    """With a large delta it is the other one: a bound that forgot it would promise too much."""
    base, law, delta = SampledGaussian(2.0, 0.5), FixedTries(10), 0.1
    alone = _each_order(base, law, delta)
    assert alone[1] > 1.05 * alone[0]
    assert Guarantee(BestOf(base, law)).epsilon(delta) == pytest.approx(alone[1], rel=1e-3)


def _each_order(base: Event, law: TriesLaw, delta: float) -> list[float]:
    """Return the epsilon of each order of the neighbours by itself."""
    alone = []
    for power in powers_of(base) or ():
        knots = mixture(points(power, law))

        def log_excess(e: float, power=power, knots=knots) -> float:  # type: ignore[no-untyped-def]
            return float(np.log(max(knots.delta(power, np.array([e]))[0], 1e-300) / delta))

        alone.append(decreasing_root(log_excess, 3.0, 1e-6))
    assert len(alone) == 2
    return alone


@pytest.mark.parametrize("law", [*LAWS, Poisson(0.05), Capped(Poisson(1.0), 2)], ids=str)
def test_a_finite_mechanism_never_loses_more(law: TriesLaw) -> None:
    """Every score of two and of three outputs, by enumeration: pure base, exact probabilities."""
    e0 = 0.9
    event = BestOf(PureEpsilon(e0), law)
    most = min(event.pure_epsilon(), 9.0)
    grid = np.concatenate([np.linspace(0, 3, 13), most * np.array([0.9, 0.95, 0.97, 0.99])])
    claimed = event.profile(grid)
    assert claimed is not None
    for first, second in _pairs(law, e0):
        found = [np.maximum(first - np.exp(e) * second, 0).sum() for e in grid]
        assert np.all(np.array(found) <= claimed + 1e-12)
        assert np.max(np.log(first / second)) <= event.pure_epsilon() + 1e-12


def _pairs(law: TriesLaw, e0: float) -> list[tuple[Array, Array]]:
    """Return the laws of the best of K on two neighbours, for every score of small mechanisms."""
    response = np.array([1.0, np.exp(-e0)]) / (1.0 + np.exp(-e0))
    three = np.array([0.45, 0.3, 0.25])
    other = np.array([0.45 * np.exp(-e0), 0.3, 0.0])
    other[2] = 1 - other.sum()
    assert np.max(np.abs(np.log(three / other))) <= e0
    found = []
    for a, b in ((response, response[::-1]), (three, other), (other, three)):
        for ranks in itertools.permutations(range(a.size)):
            order = list(ranks)
            found.append((_released(law, a[order]), _released(law, b[order])))
    return found


def _released(law: TriesLaw, masses: Array) -> Array:
    """Return the probability that each output is the best of K: phi(1 - p) - phi(1 - p - q)."""

    def phi(u: Array) -> Array:
        return np.asarray(np.polynomial.polynomial.polyval(u, law.table), dtype=np.float64)

    above = np.concatenate([[0.0], np.cumsum(masses)])
    return phi(1 - above[:-1]) - phi(np.maximum(1 - above[1:], 0.0))


# Laws that often try nothing at all: what is released then is most of what there is.
MAY_BE_NONE = [Poisson(0.05), Poisson(0.3), Poisson(1.0), Capped(Poisson(1.0), 2)]


@pytest.mark.parametrize("law", [*MAY_BE_NONE, TruncatedNegativeBinomial(1.0, 0.1)], ids=str)
def test_the_renyi_divergence_of_a_finite_mechanism_is_never_more(law: TriesLaw) -> None:
    """K = 0 releases the same on both neighbours."""
    e0, orders = 0.9, np.array([1.1, 1.5, 2.0, 5.0, 20.0])
    claimed = BestOf(PureEpsilon(e0), law).renyi(orders)
    found = []
    for first, second in _pairs(law, e0):
        assert first.sum() + law.at_zero == pytest.approx(1.0, abs=1e-12)
        moments = [first**x @ second ** (1 - x) for x in orders]
        found.append(np.log(law.at_zero + np.array(moments)) / (orders - 1))
    assert np.all(np.array(found) <= claimed + 1e-12)
    # an attack comes close where much is lost, and the claim is more than the pure loss nowhere
    assert np.max(found, axis=0)[-1] >= 0.6 * claimed[-1]
    assert np.all(claimed <= BestOf(PureEpsilon(e0), law).pure_epsilon())


def test_the_renyi_divergence_counts_both_orders() -> None:
    base, law, orders = SampledGaussian(1.0, 0.3), Poisson(1.0), np.array([1.5, 4.0, 16.0])
    one_run = base.renyi(orders)
    each = [
        renyi(points(power, law), law.at_zero, one_run, orders) for power in powers_of(base) or ()
    ]
    assert len(each) == 2
    assert np.min(np.abs(each[0] / each[1] - 1.0)) > 1e-3
    np.testing.assert_allclose(BestOf(base, law).renyi(orders), np.max(each, axis=0), rtol=1e-12)


@pytest.mark.parametrize("law", [Poisson(10.0), TruncatedNegativeBinomial(1.0, 0.1)], ids=str)
def test_slopes_are_moved_to_the_safe_side(law: TriesLaw) -> None:
    """By 1e-9, which the proof needs for what floats lose and for how K is drawn."""
    corners = points(GaussianPower(0.5), law)
    assert corners.released[0] >= law.mean * (1 + 0.9e-9)
    assert corners.elsewhere[-1] <= law.slope(np.ones(1))[0] * (1 - 0.9e-9)
    # slopes are rounded up to multiples of 1e-8 of their logarithms
    up = np.exp(np.ceil(np.log(corners.released[0]) * 1e8) / 1e8)
    assert mixture(corners).weights.sum() >= up * (1 + 0.9e-9)


@pytest.mark.parametrize("base", [Gaussian(2.0), PureEpsilon(0.5)], ids=str)
def test_a_table_of_the_profile_is_never_below_it(base: Event) -> None:
    """More than 64 epsilons are read off a table; below 0 there is what the opposite order says."""
    event = BestOf(base, TruncatedNegativeBinomial(1.0, 0.1))
    grid = np.linspace(0.0, 4.0, 201)
    many = event.profile(np.concatenate([-grid, grid]))
    few = [event.profile(part) for part in np.array_split(grid, 5)]
    assert many is not None
    exact = np.concatenate([part for part in few if part is not None])
    below, above = many[:201], many[201:]
    assert np.all(above >= exact * (1 - 1e-9))
    assert np.all(above <= exact * 1.01 + 1e-15)
    # H(-e) = 1 - exp(-e) + exp(-e) H'(e)
    np.testing.assert_allclose(below, 1 - np.exp(-grid) + np.exp(-grid) * above, rtol=1e-12)


@pytest.mark.parametrize("mean", [0.05, 0.3, 1.0, 3.0])
def test_the_renyi_divergence_of_a_poisson_number_of_tries(mean: float) -> None:
    """docs/proofs/best_of.md, section 5, written down with F of randomised response."""
    e0, orders = 0.5, np.array([1.2, 2.0, 8.0, 50.0])
    p = np.linspace(0.0, 1.0, 100_001)
    better = np.minimum(np.exp(e0) * p, 1.0 - np.exp(-e0) * (1.0 - p))
    event = BestOf(PureEpsilon(e0), Poisson(mean))
    for a, one_run, claimed in zip(
        orders, PureEpsilon(e0).renyi(orders), event.renyi(orders), strict=True
    ):
        ratio = np.max(np.log(mean) - a * mean * p - (1 - a) * mean * better)
        total = np.exp(-mean) + np.exp((a - 1) * one_run + ratio)
        expected = min(max(np.log(total) / (a - 1), 0.0), e0 + mean * np.tanh(e0 / 2))
        assert claimed == pytest.approx(expected, rel=2e-3)
        assert claimed >= expected * (1 - 1e-6)


@pytest.mark.parametrize("law", [*LAWS, *MAY_BE_NONE], ids=str)
def test_laws_are_consistent(law: TriesLaw) -> None:
    k = np.arange(law.table.size)
    p = np.linspace(0.0, 1.0, 11)
    slope = [float((k * law.table)[1:] @ (1 - x) ** (k[1:] - 1.0)) for x in p]
    np.testing.assert_allclose(law.slope(p), slope, rtol=1e-11, atol=1e-13)
    assert law.table.sum() == pytest.approx(1.0, abs=1e-12)
    assert law.mean == pytest.approx(k @ law.table, rel=1e-12, abs=0.0)
    assert law_from_dict(law.to_dict()) == law


def test_laws_refuse_what_they_are_not() -> None:
    for wrong in (
        lambda: TruncatedNegativeBinomial(-1.0, 0.1),
        lambda: TruncatedNegativeBinomial(1.0, 1.0),
        lambda: TruncatedNegativeBinomial.of_mean(1.0),
        lambda: Poisson(0.0),
        lambda: FixedTries(0),
        lambda: Capped(FixedTries(10), 5),
        lambda: law_from_dict({"kind": "no such law"}),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        BestOf(Gaussian(1.0), 20)


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0])
def test_tabulated_power_is_that_of_the_gaussian_and_never_below(mu: float) -> None:
    event: Event = Composed((Gaussian(1 / mu), PureEpsilon(1e-7)))
    (table,) = powers_of(event) or ()
    exact = GaussianPower(mu)
    p = np.concatenate([np.geomspace(1e-12, 0.5, 50), 1 - np.geomspace(1e-9, 0.5, 50)])
    assert np.all(table.better(p) >= exact.better(p) * (1 - 1e-9))
    np.testing.assert_allclose(table.better(p), exact.better(p), rtol=2e-3)
    e = np.linspace(-4 * mu, 4 * mu, 41)
    assert np.all(table.delta(e) >= exact.delta(e) * (1 - 1e-9))
    np.testing.assert_allclose(table.delta(e), exact.delta(e), rtol=2e-3)


def test_no_events_are_cheaper_by_being_composed_first() -> None:
    law = TruncatedNegativeBinomial(1.0, 0.1)
    closed = Guarantee(BestOf(Gaussian(2.0), law)).epsilon(DELTA)
    stiff = Composed((LogisticObjective(1.0, 1e7, 2.0 * 1.0001), Gaussian(1e6)))
    tabulated = Guarantee(BestOf(stiff, law)).epsilon(DELTA)
    assert closed * 0.998 <= tabulated <= closed * 1.01


def test_one_of_is_the_worst() -> None:
    law = TruncatedNegativeBinomial(1.0, 0.1)
    weak, strong = Gaussian(2.0), Gaussian(4.0)
    both = Guarantee(BestOf(OneOf((weak, strong)), law)).epsilon(DELTA)
    assert both == Guarantee(BestOf(weak, law)).epsilon(DELTA)
    mixed = BestOf(OneOf((weak, PureEpsilon(0.5))), law)
    assert Guarantee(mixed).epsilon(DELTA) >= both


def test_renyi_is_never_looser_than_papernot_and_steinke() -> None:
    # epsilon' = r(a) + (1+eta)(1 - 1/b) r(b) + (1+eta) log(1/gamma) / b + log E K / (a-1), best b
    eta, gamma, rho = 1.0, 0.1, 0.125
    law = TruncatedNegativeBinomial(eta, gamma)
    b = np.linspace(1.01, 200, 4000)
    extra = np.min((1 + eta) * ((1 - 1 / b) * rho * b + np.log(1 / gamma) / b))
    a = np.array([1.5, 2.0, 5.0, 20.0])
    theirs = rho * a + extra + np.log(law.mean) / (a - 1)
    ours = BestOf(ZeroConcentrated(rho), law).renyi(a)
    assert np.all(ours <= theirs * 1.002)


@pytest.mark.parametrize("law", LAWS[:5], ids=str)
def test_pure_runs(law: TriesLaw) -> None:
    e0 = 0.5
    event = BestOf(PureEpsilon(e0), law)
    if isinstance(law, TruncatedNegativeBinomial):
        assert event.pure_epsilon() <= (2 + law.eta) * e0  # Papernot and Steinke
    if isinstance(law, Poisson):
        assert event.pure_epsilon() == pytest.approx(e0 + law.mean * np.tanh(e0 / 2), rel=1e-3)
    # the worst pair: randomised response with the score that prefers the rarer output
    p = pure_power(e0).better(np.array([1 / (1 + np.exp(e0))]))
    assert p[0] == pytest.approx(1 / (1 + np.exp(-e0)), rel=1e-9)


def test_composition_adds_up() -> None:
    event = BestOf(Gaussian(4.0), TruncatedNegativeBinomial(1.0, 0.2))
    once = Guarantee(event).epsilon(DELTA)
    with_more = Guarantee(Composed((event, Gaussian(4.0)))).epsilon(DELTA)
    twice = Guarantee(Repeated(event, 2)).epsilon(DELTA)
    assert once < with_more < twice < 2 * once


@pytest.mark.parametrize("also", [(), (0.3,), (1e-5,)])
def test_every_probability_is_in_a_cell(also: tuple[float, ...]) -> None:
    edges = _edges(GaussianPower(0.5), TruncatedNegativeBinomial(1.0, 0.1), also)
    assert edges[0] == 0.0
    assert edges[-1] == 1.0
    assert set(also) <= set(edges.tolist())


def test_runs_that_are_never_released_count_for_nothing() -> None:
    # a fixed number of tries releases no run that all others beat
    found = BestOf(Gaussian(2.0), FixedTries(3)).renyi(np.array([1.5, 8.0]))
    assert found.tolist() == [math.inf, math.inf]  # and not NaN


def test_each_order_has_its_divergence() -> None:
    at = points(GaussianPower(0.5), FixedTries(3))
    with pytest.raises(ValueError, match="zip"):
        renyi(at, 0.0, np.array([0.1]), np.array([2.0, 3.0]))
    with pytest.raises(ValueError, match="zip"):
        RenyiPower(np.array([2.0, 3.0]), np.array([0.1])).better(np.array([0.5]))


def test_tables_of_laws_end_where_they_say() -> None:
    """What a table leaves out is 1e-13 of the mean (docs/proofs/best_of.md, section 6)."""
    assert FixedTries(5).table.tolist() == [0.0] * 5 + [1.0]
    geometric = TruncatedNegativeBinomial(1.0, 0.5).table
    np.testing.assert_allclose(geometric[1:], 0.5 ** np.arange(1.0, 65.0), rtol=1e-12)
    # 64 entries would leave out 1.5e-13
    long = TruncatedNegativeBinomial(1.0, 1.0 - (1.5e-13 / 64) ** (1 / 63))
    assert long.table.size > 65


def test_power_from_divergences_is_never_below_the_gaussian() -> None:
    orders, p = np.array([1.5, 2.0, 4.0, 16.0]), np.array([1e-9, 1e-4, 0.05, 0.5, 0.9, 0.999])
    power = RenyiPower(orders, orders * 0.5**2 / 2)
    found = power.better(p)
    assert np.all(found >= norm.cdf(norm.ppf(p) + 0.5))
    assert np.all(found[:4] < 0.9)
    assert np.all(np.diff(found) > 0.0)
    # (exp(r) p)^((a-1)/a) and 1 - exp(-r) (1 - p)^(a/(a-1)), rounded up by 1e-10
    alone = RenyiPower(np.array([2.0]), np.array([0.25])).better(np.array([1e-4, 0.9]))
    exact = np.array([math.exp(0.125) * 1e-2, 1 - math.exp(-0.25) * (1 - 0.9) ** 2])
    np.testing.assert_allclose(alone, exact * (1 + 1e-10), rtol=1e-12)


def test_what_convolution_may_hide_is_in_the_power() -> None:
    charge = 8 * 2.0**-51
    (alike,) = powers_of(Repeated(PureEpsilon(0.1), 8)) or ()
    both = powers_of(Repeated(SampledGaussian(2.0, 0.1), 8)) or ()
    assert len(both) == 2
    for power in (alike, *both):
        assert isinstance(power, TabulatedPower)
        assert power.deltas.min() >= charge * (1 - 1e-12)
        assert power.opposite.min() >= charge * (1 - 1e-12)


def test_a_hull_is_below_its_points_and_ends_with_them() -> None:
    at, deltas = np.log([1.0, 2.0, 3.0, 4.0]), np.array([0.9, 0.8, 0.1, 0.05])
    np.testing.assert_allclose(_hull_at(at, deltas), [0.9, 0.5, 0.1, 0.05], rtol=1e-12)


def test_one_order_alone_does_not_stand_for_two() -> None:
    powers = powers_of(OneOf((Gaussian(5.0), SampledGaussian(1.0, 0.1)))) or ()
    assert len(powers) == 2
    at = np.array([0.5, 0.7])
    assert np.all(powers[0].delta(at) > 1.5 * powers[1].delta(at))


def test_losses_beyond_floats_have_a_power() -> None:
    power = pure_power(800.0)
    found = power.better(np.array([0.0, 1e-300, 0.5, 1.0]))
    assert np.all(found == 1.0)
    # h is 1 at minus infinity, and the line from there to the first point is above it
    first = pure_power(1.0)
    expected = [1.0, 1 - math.exp(-1.0) * (1 - float(first.deltas[0]))]
    np.testing.assert_allclose(first.delta(np.array([-math.inf, -2.0])), expected, rtol=1e-12)


@pytest.mark.parametrize("eta", [1e-300, 1e-17, 1e-12, 1e-10, 1e-7])
def test_laws_near_the_logarithmic_one_are_what_they_say(eta: float) -> None:
    """To 1e-12 of itself (docs/proofs/best_of.md, section 6), of which a draw makes use."""
    found = TruncatedNegativeBinomial(eta, 0.01).slope(np.array([0.0, 0.3, 1.0]))
    with mpmath.workdps(400):
        e, gamma = mpmath.mpf(eta), mpmath.mpf(0.01)
        over = e / (gamma**-e - 1)
        for p, value in zip((0.0, 0.3, 1.0), found.tolist(), strict=True):
            exact = (1 - gamma) * over * (gamma + (1 - gamma) * mpmath.mpf(p)) ** (-e - 1)
            assert float(value / exact) == pytest.approx(1.0, abs=1e-14)
