"""Pins of the accounting, and a sanitised figure that is what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from tacit.noise import secure_source
from tacit.noise.gaussian import smooth_gaussian
from tacit.pate import GNMax, LNMax, Majority, Sanitised
from tacit.pate.plan import SanitisedCost
from tacit.privacy import (
    Budget,
    Composed,
    Event,
    Gaussian,
    Guarantee,
    Relation,
    Repeated,
    SmoothGaussian,
)
from tacit.queries import Facts, Held, Session, Slot
from tacit.queries.votes import Votes
from tacit.queries.votes_cost import SeveralClasses, Table, TwoClasses, votes_renyi
from tacit.records import Bounds

DELTA = 1e-5


def winners(noise_std: float, n_queries: int) -> Guarantee:
    return Guarantee(GNMax(noise_std).event(n_queries, Relation.ADD_REMOVE))


@pytest.mark.parametrize(
    ("n_queries", "noise_std", "epsilon"), [(100, 40, 1.36), (286, 40, 2.44), (1000, 100, 1.76)]
)
def test_gaussian_composition(n_queries: int, noise_std: float, epsilon: float) -> None:
    assert winners(noise_std, n_queries).epsilon(DELTA) == pytest.approx(epsilon, abs=0.005)


@pytest.mark.parametrize(
    ("epsilon", "n_queries", "noise_std"),
    [(1, 50, 37.3), (1, 100, 52.8), (1, 500, 118), (2, 50, 19.9), (2, 100, 28.2), (0.5, 50, 70.3)],
)
def test_calibration(epsilon: float, n_queries: int, noise_std: float) -> None:
    planned = GNMax().planned(Budget(epsilon, DELTA), n_queries)
    assert planned.noise_std == pytest.approx(noise_std, rel=2e-3)
    assert winners(planned.noise_std, n_queries).epsilon(DELTA) == pytest.approx(epsilon, rel=1e-6)


def test_laplace_costs_two_gamma() -> None:
    assert Guarantee(LNMax(0.05).event(30, Relation.ADD_REMOVE)).epsilon(0.0) == pytest.approx(3.0)
    assert LNMax().planned(Budget(3.0, 0.0), 30).gamma == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("n_queries", "noise_std", "epsilon"),
    [(500, 100, 1.02), (500, 80, 1.31), (500, 40, 2.81), (1500, 80, 2.39)],
)
def test_majorities(n_queries: int, noise_std: float, epsilon: float) -> None:
    spent = Guarantee(Majority(noise_std).event(n_queries, Relation.ADD_REMOVE)).epsilon(DELTA)
    assert spent == pytest.approx(epsilon, abs=0.006)
    planned = Majority().planned(Budget(epsilon, DELTA), n_queries)
    assert planned.noise_std == pytest.approx(noise_std, rel=6e-3)
    assert spent < 0.87 * winners(noise_std, n_queries).epsilon(DELTA)


@pytest.mark.parametrize(
    ("votes", "cost"),
    [
        ([250] + [0] * 9, 5.3213e-5),
        ([200, 30, 20] + [0] * 7, 1.99555e-3),
        ([200, 30, 20], 1.311e-3),
        ([126, 124], 0.0125),
    ],
)
def test_theorem_6(votes: list[int], cost: float) -> None:
    found = votes_renyi([votes, votes[::-1]], 40.0, [20.0])[0] / 2
    assert found == pytest.approx(cost, rel=3e-4)


def test_votes_are_summed_by_pattern() -> None:
    rng = np.random.default_rng(3)
    votes = rng.multinomial(100, [0.8, 0.15, 0.05], size=500)
    orders = np.array([1.5, 7.0, 60.0])
    one_by_one = sum(votes_renyi([v], 30.0, orders) for v in votes)
    np.testing.assert_allclose(votes_renyi(votes, 30.0, orders), one_by_one, rtol=1e-12)


@pytest.mark.parametrize(
    ("noise_std", "order", "holds"), [(20.0, 25.0, False), (40.0, 20.0, True), (80.0, 10.0, True)]
)
def test_conditions(noise_std: float, order: float, holds: bool) -> None:
    assert SeveralClasses(noise_std, 10, order).conditions_hold() is holds


def answers_and_cost(
    how: Sanitised, table: Table, counts: list[list[int]], relation: Relation
) -> tuple[SanitisedCost, Event]:
    """Return the figure of votes, and what telling it cost."""
    votes, facts = Votes(len(counts), 250, len(counts[0])), Facts(Bounds(), 1, relation)
    query = how.query(votes, table)
    session = Session(None, facts, query.event(facts), {"cost": Slot(query.event(facts))})
    noisy = session.ask(query, "cost", of=Held(np.array(counts), votes))
    return how.figure(noisy, query, facts, DELTA), session.close()


def test_a_failed_condition_falls_back() -> None:
    how, table = Sanitised(25.0, 0.005, 20.0), SeveralClasses(20.0, 3, 25.0)
    told, event = answers_and_cost(how, table, [[240, 10, 0]] * 10, Relation.REPLACE)
    assert told.epsilon is None
    assert "worst case" in str(told)
    assert event == SmoothGaussian(20.0, 0.005, -float(ndtri(0.05)), Relation.REPLACE)
    with pytest.raises(ValueError, match="not fixed"):
        answers_and_cost(Sanitised(), table, [[240, 10, 0]] * 10, Relation.REPLACE)


def test_two_gaussians_of_different_width() -> None:
    """The stated divergence against an integral, at the worst pair the contract allows."""
    x = np.linspace(-200, 200, 400_001)

    def log_density(mean: float, std: float) -> np.ndarray:
        return -0.5 * ((x - mean) / std) ** 2 - math.log(std * math.sqrt(2 * math.pi))

    for z, b, m, a in ((2.0, 0.05, 0.0, 4.0), (3.0, 0.02, 1.6, 9.0), (1.0, 0.1, 0.0, 3.0)):
        claimed = float(SmoothGaussian(z, b, m).renyi(np.array([a]))[0])
        exact = []
        for size, other in ((1.0, math.exp(-b)), (1.0, math.exp(b)), (1.0, 1.0)):
            gap = min(size, other)
            for sign in (-1, 1):
                p = log_density(m * z * size, z * size)
                q = log_density(sign * gap + m * z * other, z * other)
                moment = np.sum(np.exp(a * p + (1 - a) * q)) * (x[1] - x[0])
                exact.append(math.log(moment) / (a - 1))
        assert max(exact) <= claimed * (1 + 1e-6)
        assert max(exact) >= 0.9 * claimed  # no constant is wrong by a tenth


def test_published_bound_of_smooth_noise_is_too_small_at_high_orders() -> None:
    """a e^2b / z^2 + ..., as printed, is below what it is to bound where a is near 1/(2b)."""
    z, b, a = 1.0, 0.05, 9.9
    printed = a * math.exp(2 * b) / z**2 + (b * a - 0.5 * math.log(1 - 2 * a * b)) / (a - 1)
    room = a - (a - 1) * math.exp(2 * b)
    # N(0, 1) against N(e^-b, e^-2b), in closed form
    exact = a / (2 * room) + ((1 - a) * b - 0.5 * math.log(room)) / (a - 1)
    assert exact > 3 * printed
    assert float(SmoothGaussian(z, b).renyi(np.array([a]))[0]) == pytest.approx(exact)


def test_a_margin_fails_as_often_as_it_says() -> None:
    event = SmoothGaussian(4.0, 0.01, margin=1.0)
    source = secure_source()
    n = 20_000
    told = np.array([smooth_gaussian(0.5, 1e-3, 1e-2, event, source).value for _ in range(n)])
    share, expected = float(np.mean(told < 0.5)), float(ndtr(-1.0))
    spread = math.sqrt(expected * (1 - expected) / n)
    # rounding up by half a step makes it fail a little less often
    assert expected - 0.01 - 6.2 * spread < share < expected + 6.2 * spread
    assert np.std(told) == pytest.approx(4e-3, rel=0.06)


def test_a_sanitised_figure_is_charged_beside_the_votes() -> None:
    how = Sanitised().fixed_for(Budget(1.0, DELTA))
    table = TwoClasses(60.0, 250, how.order or 0.0)
    told, event = answers_and_cost(how, table, [[250, 0]] * 50, Relation.ADD_REMOVE)
    assert "too low with probability 0.05" in str(told)
    votes = Repeated(Gaussian(40.0), 100)
    both = Guarantee(Composed((votes, event)))
    assert both.epsilon(DELTA) > Guarantee(votes).epsilon(DELTA)


@pytest.mark.parametrize("wrong", [{"failure": 0.6}, {"order": 0.5}, {"smoothness": -1.0}])
def test_wrong_numbers_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Sanitised(**wrong)
