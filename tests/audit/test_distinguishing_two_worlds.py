"""Audits of a mechanism that is known: alarms where noise is missing, seldom where it is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from tacit.audit import Audit, audit_fits
from tacit.audit.distinguishing import findings_of
from tacit.noise import Norm
from tacit.noise.bounded import Bounded
from tacit.noise.gaussian import gaussian
from tacit.privacy import Budget, Gaussian, Relation
from tacit.privacy.accounting.gaussian_profile import gaussian_mu

CLAIM = Budget(1.0, 1e-5)
NOISE = 1 / gaussian_mu(1.0, 1e-5)


def total(values: list[float], rng: np.random.Generator) -> float:
    """Return a sum of numbers up to 1, with Gaussian noise; its own, not of ``rng``."""
    del rng
    bounded = Bounded(float(sum(values)), 1.0, Norm.L2, Relation.ADD_REMOVE)
    return float(gaussian(bounded, NOISE).value)


def cheap(noise: float, fits: int = 400) -> Audit:
    def fit(values: list[float], rng: np.random.Generator) -> float:
        return sum(values) + noise * rng.standard_normal()

    return audit_fits(fit, [], [1.0], CLAIM, fits=fits)


def test_false_alarms_are_as_seldom_as_the_level_says() -> None:
    # At level 5 %; no more than chance allows. How many there are is in benchmarks/audit.py.
    alarms = sum(bool(cheap(NOISE).above_claim) for _ in range(200))
    assert alarms <= binom.isf(1e-10, 200, 0.06)


def test_noise_that_is_a_third_is_found_by_few_fits() -> None:
    found = cheap(NOISE / 3, fits=4000)
    assert found.above_claim
    assert "CONTRADICTED" in str(found)


def test_noise_of_our_own_is_told_apart_as_much_as_it_should_be() -> None:
    found = audit_fits(total, [], [1.0], CLAIM, score=lambda v: float(v[0]), fits=4000)
    *_, means = found.findings
    # mu = 0.268 is known to within 0.033: 7 of these on either side
    assert 0.0 < means.epsilon < 2.0
    assert "passed" not in str(found).lower()
    assert "does not show that the claim is true" in found.conclusion or found.above_claim


def promised(epsilon: float) -> Gaussian:
    return Gaussian(1 / gaussian_mu(epsilon, CLAIM.delta))


@pytest.mark.parametrize(("share", "above"), [(1.0, False), (0.4, True)])
def test_errors_are_held_against_the_promise_at_every_delta(share: float, above: bool) -> None:
    def fit(values: list[float], rng: np.random.Generator) -> float:
        return sum(values) + share * NOISE * rng.standard_normal()

    found = audit_fits(fit, [], [1.0], CLAIM, promised=promised, fits=8000, level=1e-6, seed=1)
    *_, whole = found.findings
    assert whole.method == "by the errors of a guesser, on the promised curve"
    assert (whole in found.above_claim) is above
    assert found.findings[0].epsilon < 0.6 * whole.epsilon  # at the claim's own delta alone
    assert whole.epsilon == pytest.approx(found.findings[1].epsilon, rel=0.25)


def test_a_strict_level_leaves_a_threshold_that_shows_something() -> None:
    """Of a fifth of so few fits no threshold promises anything; then the middle is taken."""
    rng = np.random.default_rng(0)
    without, with_it = rng.standard_normal(300), 1.5 + rng.standard_normal(300)
    *_, whole = findings_of(without, with_it, CLAIM, 1e-6, promised=promised)
    assert whole.epsilon > 1.0


def test_a_pure_claim_is_judged_by_counts_alone() -> None:
    def laplace(values: list[float], rng: np.random.Generator) -> float:
        return sum(values) + rng.laplace(scale=1.0)

    found = audit_fits(laplace, [], [1.0], Budget(1.0), fits=40_000)
    (only,) = found.findings
    assert 0.3 < only.epsilon < 2.0  # 0.93 in the middle
    assert only.assumes == "nothing of the mechanism"


def test_a_threshold_is_not_judged_by_the_fits_that_chose_it() -> None:
    """With few fits the best threshold in sight would find something in noise alone."""

    def same(values: list[float], rng: np.random.Generator) -> float:
        return rng.standard_normal()

    found = [audit_fits(same, [], [1.0], CLAIM, fits=60) for _ in range(60)]
    for place in range(3):
        wrong = sum(audit.findings[place].epsilon > 0.0 for audit in found)
        assert wrong <= binom.isf(1e-10, 60, 0.05)


def test_the_direction_is_found_where_nobody_says_what_to_look_at() -> None:
    hidden = np.array([0.0, 3.0, -4.0]) / 5

    def fit(values: list[float], rng: np.random.Generator) -> object:
        return sum(values) * hidden + 0.2 * rng.standard_normal(3)

    found = audit_fits(fit, [], [1.0], Budget(1.0, 1e-5), fits=2000)
    assert found.strongest.epsilon > 10.0


@pytest.mark.parametrize(
    ("words", "named"),
    [({"fits": 10}, "fits"), ({"level": 0.0}, "level"), ({"level": math.nan}, "level")],
)
def test_nonsense_is_refused(words: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        audit_fits(total, [], [1.0], CLAIM, **words)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not finite"):
        audit_fits(lambda values, rng: math.inf, [], [1.0], CLAIM)


def test_what_is_found_is_said_in_json() -> None:
    said = cheap(NOISE).to_dict()
    assert said["claim"] == {"epsilon": 1.0, "delta": 1e-5, "relation": "add_remove"}
    assert [set(finding) for finding in said["findings"]] == [{"method", "epsilon", "assumes"}] * 3
    assert said["fits"] == [180, 180]  # a tenth chose the direction
