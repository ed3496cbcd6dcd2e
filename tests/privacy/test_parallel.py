"""Disjoint parts cost the worst of them: against enumeration, in every currency, and no less."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    GaussianSum,
    Guarantee,
    LogisticObjective,
    NonPrivate,
    Parallel,
    PureEpsilon,
    Relation,
    RenyiSum,
    Repeated,
    SampledGaussian,
    ZeroConcentrated,
    event_from_dict,
)
from tacit.privacy.accounting.composition import LossDistributionRoute

Array = npt.NDArray[np.float64]
DELTAS = (1e-9, 1e-6, 1e-3)
PARTS: dict[str, tuple[Event, Event]] = {
    "gaussians": (Gaussian(3.0), Repeated(Gaussian(7.0), 4)),
    # Neither profile is above the other everywhere: at small delta the Gaussian costs more.
    "crossing": (PureEpsilon(1.2), Gaussian(3.5)),
    "objective": (Composed((LogisticObjective(1.0, 0.6, 8.0), Gaussian(60.0))), Gaussian(4.2)),
    "sampled": (Repeated(SampledGaussian(2.0, 0.05), 100), Gaussian(2.2)),
    "by Renyi alone": (ZeroConcentrated(0.03), Gaussian(4.0)),
    "choices": (Repeated(ExponentialMechanism(0.2), 5), PureEpsilon(0.7)),
}


@pytest.mark.parametrize("name", PARTS)
def test_alone_it_costs_the_worst_part(name: str) -> None:
    parts = PARTS[name]
    promise = Guarantee(Parallel(parts))
    for delta in DELTAS:
        each = [Guarantee(part).epsilon(delta) for part in parts]
        assert promise.epsilon(delta) == pytest.approx(max(each), rel=1e-9)
    for epsilon in (0.1, 1.0):
        deltas = [Guarantee(part).delta(epsilon) for part in parts]
        assert promise.delta(epsilon) == pytest.approx(max(deltas), rel=1e-9, abs=0.0)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("beside", [Gaussian(5.0), PureEpsilon(0.4)], ids=["gaussian", "pure"])
def test_with_others_it_costs_as_much_as_each_part_with_them(name: str, beside: Event) -> None:
    parts = PARTS[name]
    whole = Guarantee(Composed((Parallel(parts), beside)))
    for delta in (1e-6, 1e-3):
        each = [Guarantee(Composed((part, beside))).epsilon(delta) for part in parts]
        assert whole.epsilon(delta) == pytest.approx(max(each), rel=1e-9)


def joint(first: Array, second: Callable[[int], Array]) -> Array:
    """Return the law of two answers, the second of which is asked in view of the first."""
    return np.concatenate([first[o] * second(o) for o in range(len(first))])


def hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def flip(bit: int, epsilon: float) -> Array:
    """Return randomised response's law."""
    right = 1.0 / (1.0 + math.exp(-epsilon))
    return np.array([right, 1 - right] if bit == 0 else [1 - right, right])


@pytest.mark.parametrize("losses", [(0.5, 0.9), (0.9, 0.5)])
def test_adaptive_releases_from_two_parts_by_enumeration(losses: tuple[float, float]) -> None:
    # Part 1 holds bit a, part 2 bits b and c; what is asked of part 2 is what part 1 answered.
    claimed = Parallel((PureEpsilon(losses[0]), PureEpsilon(losses[1])))
    worst = dict.fromkeys((0.0, 0.3, 0.6, 0.8), 0.0)

    def law(a: int, b: int, c: int) -> Array:
        asked = (b, c)
        return joint(flip(a, losses[0]), lambda o: flip(asked[o], losses[1]))

    for a, b, c in itertools.product((0, 1), repeat=3):
        # a record of part 1 changes a; one of part 2 may change b and c
        others = [(1 - a, b, c), *((a, x, y) for x, y in itertools.product((0, 1), repeat=2))]
        for other, epsilon in itertools.product(others, worst):
            delta = hockey_stick(law(a, b, c), law(*other), epsilon)
            worst[epsilon] = max(worst[epsilon], delta)
            assert delta <= Guarantee(claimed).delta(epsilon) + 1e-12
    # and it is reached, so nothing less than the greatest is sound
    for epsilon, reached in worst.items():
        assert reached == pytest.approx(Guarantee(claimed).delta(epsilon), abs=1e-12)


def test_a_split_by_secret_coins_by_enumeration() -> None:
    # Records 0 and 1 fall into parts by coins; each part answers its (saturated) count, flipped.
    e1, e2 = 0.5, 0.9

    def law(n_records: int) -> Array:
        total = np.zeros(4)
        for coins in itertools.product((0, 1), repeat=n_records):
            ones = sum(coins)
            counts = (min(n_records - ones, 1), min(ones, 1))
            total += joint(flip(counts[0], e1), lambda o, c=counts[1]: flip(c, e2)) / 2**n_records
        return total

    promise = Guarantee(Parallel((PureEpsilon(e1), PureEpsilon(e2))))
    for epsilon in (0.0, 0.2, 0.5):
        for fewer in (0, 1):
            there, here = law(fewer), law(fewer + 1)
            for pair in ((there, here), (here, there)):
                assert hockey_stick(*pair, epsilon) <= promise.delta(epsilon) + 1e-12


class First(Parallel):
    """A mutant: the first part is taken for the worst."""

    kind = "test_parallel_first"

    def renyi(self, orders: Array) -> Array:
        return self.events[0].renyi(orders)


class Least(Parallel):
    """A mutant: the least of the parts."""

    kind = "test_parallel_least"

    def renyi(self, orders: Array) -> Array:
        least: Array = np.min([part.renyi(orders) for part in self.events], axis=0)
        return least


class Summed(Parallel):
    """A mutant: sound, and wasteful."""

    kind = "test_parallel_summed"

    def renyi(self, orders: Array) -> Array:
        total: Array = np.sum([part.renyi(orders) for part in self.events], axis=0)
        return total


def is_the_greatest_of_its_parts(event: Parallel) -> bool:
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    each = [part.renyi(orders) for part in event.events]
    return np.allclose(event.renyi(orders), np.max(each, axis=0), rtol=1e-12)


@pytest.mark.parametrize("mutant", [First, Least, Summed])
def test_mutants_of_the_divergence_are_caught(mutant: type[Parallel]) -> None:
    parts = (Gaussian(9.0), PureEpsilon(0.8), Gaussian(3.0))
    assert is_the_greatest_of_its_parts(Parallel(parts))
    assert not is_the_greatest_of_its_parts(mutant(parts))


def test_every_currency_is_the_greatest() -> None:
    crossing = Parallel((PureEpsilon(1.2), Gaussian(3.5)))
    grid = np.linspace(-4.0, 4.0, 41)
    profiles = [PureEpsilon(1.2).profile(grid), Gaussian(3.5).profile(grid)]
    assert crossing.profile(grid) == pytest.approx(np.max(profiles, axis=0), rel=1e-6, abs=0.0)
    assert not np.all(profiles[0] >= profiles[1])
    assert not np.all(profiles[1] >= profiles[0])
    assert crossing.pure_epsilon() == math.inf
    assert crossing.gaussian_mu() is None
    gaussians = Parallel((Gaussian(3.0), Repeated(Gaussian(7.0), 4), Gaussian(5.0)))
    assert gaussians.gaussian_mu() == pytest.approx(1 / 3)
    pure = Parallel((PureEpsilon(0.5), Repeated(PureEpsilon(0.3), 2)))
    assert pure.pure_epsilon() == pytest.approx(0.6)
    assert Guarantee(pure).epsilon(0.0) == pytest.approx(0.6)


def test_many_times_it_is_at_least_any_choice_of_parts() -> None:
    # Three splits, each with parts of its own: a person may be in any part of each.
    for name in ("crossing", "sampled"):
        parts = PARTS[name]
        thrice = Guarantee(Repeated(Parallel(parts), 3))
        assert isinstance(thrice._routes[0], LossDistributionRoute)
        for chosen in itertools.combinations_with_replacement(parts, 3):
            assert thrice.epsilon(1e-6) >= Guarantee(Composed(chosen)).epsilon(1e-6) * (1 - 2e-3)
    by_renyi = Guarantee(Repeated(Parallel(PARTS["by Renyi alone"]), 3))
    assert by_renyi.route(1e-6) == "Renyi"


def test_two_splits_cost_the_worst_choice_of_parts() -> None:
    one, other = PARTS["crossing"], (PureEpsilon(0.3), Gaussian(6.0))
    both = Guarantee(Composed((Parallel(one), Parallel(other)))).epsilon(1e-6)
    pairs = itertools.product(one, other)
    worst = max(Guarantee(Composed(pair)).epsilon(1e-6) for pair in pairs)
    assert both == pytest.approx(worst, rel=1e-9)


def test_accountants_charge_the_worst_part() -> None:
    event = Parallel((Gaussian(3.0), Gaussian(4.0)))
    for rule in (GaussianSum(), RenyiSum(12.0), None):
        budget = Budget(3.0, 1e-6)
        both, worst = (Accountant(budget, rule) if rule else Accountant(budget) for _ in range(2))
        assert both.charge(event) == pytest.approx(worst.charge(Gaussian(3.0)), rel=1e-9)


def test_a_part_without_a_promise_voids_all() -> None:
    event = Parallel((Gaussian(3.0), Composed((Gaussian(9.0), NonPrivate("shown")))))
    assert Guarantee(event).voided_by == ("shown",)
    assert Guarantee(Composed((event, Gaussian(9.0)))).epsilon(1e-3) == math.inf
    with pytest.raises(BudgetExceeded):
        Accountant(Budget(1.0, 1e-6)).charge(event)


def test_it_survives_a_ledger() -> None:
    event = Parallel(
        (Repeated(Gaussian(3.0, Relation.REPLACE), 2), PureEpsilon(1, Relation.REPLACE))
    )
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert event.relation is Relation.REPLACE


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one event"):
        Parallel(())
    with pytest.raises(TypeError, match="takes events"):
        Parallel((1.0,))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="different relations"):
        Parallel((Gaussian(1.0), Gaussian(1.0, Relation.REPLACE)))
    with pytest.raises(ValueError, match="contradicts"):
        Parallel((Gaussian(1.0),), Relation.REPLACE)


def test_counts_within_a_part_count() -> None:
    both = Parallel((Gaussian(2.0), Composed((Repeated(Gaussian(3.0), 4), Gaussian(6.0)))))
    mu = math.sqrt(4 / 9 + 1 / 36)
    assert both.gaussian_mu() == pytest.approx(mu, rel=1e-14, abs=0.0)
    epsilons = np.array([-0.4, 0.0, 1.0])
    found = both.profile(epsilons)
    assert found is not None
    np.testing.assert_allclose(found, Gaussian(1 / mu).profile(epsilons), rtol=1e-12)
    # Of two releases in one part none alone is the cost, of whatever kind they are.
    for part in (
        Repeated(PureEpsilon(0.3), 2),
        Composed((PureEpsilon(0.3), PureEpsilon(0.2))),
        Composed((PureEpsilon(0.3), Repeated(Gaussian(2.0), 3))),
    ):
        assert Parallel((part, Gaussian(2.0))).profile(epsilons) is None
