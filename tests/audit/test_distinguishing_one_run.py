"""One fit with canaries: the published figures, and what is found of a mechanism that is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tacit.audit import audit_one_run
from tacit.audit.distinguishing import epsilon_of_guesses, gaussian_epsilon_of_guesses
from tacit.privacy import Budget
from tacit.privacy.accounting.gaussian_profile import gaussian_mu

Array = npt.NDArray[np.float64]


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "delta", "epsilon"),
    [
        (100, 100, 75, 0.0, 0.7022),
        (1000, 100, 75, 1e-4, 0.6730),
        (100_000, 1510, 1439, 1e-5, 2.6759),
        (1000, 1000, 750, 1e-5, 0.976),
    ],
)
def test_pins_of_steinke_nasr_and_jagielski(
    canaries: int, guesses: int, right: int, delta: float, epsilon: float
) -> None:
    found = epsilon_of_guesses(canaries, guesses, right, delta)
    assert found == pytest.approx(epsilon, abs=6e-4)


def test_the_pin_of_mahloujifar_melis_and_chaudhuri() -> None:
    assert gaussian_epsilon_of_guesses(1000, 1000, 750, 1e-5) == pytest.approx(1.819, abs=6e-4)


def test_nothing_is_found_in_guesses_by_chance() -> None:
    for right in (0, 40, 50, 55):
        assert epsilon_of_guesses(100, 100, right, 0.0) == 0.0
        assert gaussian_epsilon_of_guesses(100, 100, right, 1e-5) == 0.0


def test_more_right_guesses_and_less_confidence_find_more() -> None:
    found = [epsilon_of_guesses(500, 200, right, 1e-6) for right in (120, 150, 180, 200)]
    assert sorted(found) == found
    assert found[0] > 0
    assert epsilon_of_guesses(500, 200, 150, 1e-6, 0.01) < found[1]
    assert epsilon_of_guesses(500, 200, 150, 1e-3) < found[1]


def summed(noise_std: float, guesses: int, d: int = 1000) -> Array:
    """Return what one run finds of a sum of rows of norm 1, by both bounds."""
    nothing = np.zeros((0, d)), np.zeros(0)

    def fit(data: tuple[Array, Array], rng: np.random.Generator) -> Array:
        return np.asarray(data[0].sum(axis=0) + noise_std * rng.standard_normal(d))

    found = audit_one_run(
        fit,
        nothing,
        (np.eye(d), np.ones(d)),
        Budget(8.0, 1e-5),
        score=lambda released, rows, labels: rows @ released,
        guesses=guesses,
    )
    return np.array([finding.epsilon for finding in found.findings])


def test_one_run_of_a_gaussian_sum() -> None:
    # Of noise for epsilon 8 half is found on its curve, guessing at a fifth of the canaries.
    plain, on_curve = summed(1 / gaussian_mu(8.0, 1e-5), 200)
    assert 1.0 < plain < on_curve
    assert 2.0 < on_curve < 8.0  # above 8 it never comes, even if all were right
    assert summed(0.2 / gaussian_mu(8.0, 1e-5), 500)[1] > 6.0


def test_guesses_are_fixed_beforehand_and_not_more_than_canaries() -> None:
    with pytest.raises(ValueError, match="guesses"):
        audit_one_run(
            lambda data, rng: np.zeros(1),
            (np.zeros((0, 1)), np.zeros(0)),
            (np.eye(1), np.ones(1)),
            Budget(1.0),
            score=lambda released, rows, labels: released,
            guesses=2,
        )
