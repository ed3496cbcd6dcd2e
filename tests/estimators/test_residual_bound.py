"""A fit whose loss could not be widened says so: in its summary, its report and its file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.cli.inspect import terms_of
from tacit.kernel import KernelRidge
from tacit.linear_model import HuberRegressor, LinearRegression, PoissonRegressor
from tacit.report import facts_of, render
from tacit.saving import load, save

RNG = np.random.default_rng(2)
ROWS = RNG.uniform(-1, 1, (60_000, 2))
COUNTS = np.clip(RNG.poisson(np.exp(1.2 + ROWS @ [0.5, -0.3])), 0, 14).astype(np.float64)
SENTENCE = "count as about"
KNOWN: dict[str, Any] = {"row_norm": 1.5, "label_range": (0, 14), "random_state": 1}
KINDS = {"poisson": PoissonRegressor, "linear": LinearRegression}


def fitted(kind: Any, n: int, epsilon: float, **more: Any) -> Any:
    return kind(epsilon, 1e-6, **{**KNOWN, **more}).fit(ROWS[:n], COUNTS[:n])


@pytest.mark.parametrize("name", KINDS)
def test_a_starved_fit_says_so_everywhere(name: str, tmp_path: Path) -> None:
    model = fitted(KINDS[name], 500, 0.5, inference=0.1)
    # about a quarter of the greatest label, which least squares measures from the middle
    assert model.residual_bound_ == pytest.approx(3.5 if name == "poisson" else 1.75, rel=0.1)
    save(model, tmp_path / "model.tacit")
    for one in (model, load(tmp_path / "model.tacit")):
        sentence = f"Residuals beyond {model.residual_bound_:.3g} {SENTENCE}"
        assert sentence in str(one.summary()).splitlines()[-1]
        facts = facts_of(one)
        assert render(facts).count(sentence) == 2
        assert any(sentence in remark for remark in terms_of(one).remarks)
    # without standard errors the report has it too
    assert SENTENCE in render(facts_of(fitted(KINDS[name], 500, 0.5)))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("mechanism", ["objective_perturbation", "noisy_gradient"])
def test_with_more_records_or_budget_the_bound_goes(name: str, mechanism: str) -> None:
    bounds = [
        getattr(fitted(KINDS[name], n, epsilon, mechanism=mechanism), "residual_bound_", 99)
        for n, epsilon in ((500, 0.5), (5000, 1.0), (60_000, 8.0))
    ]
    assert bounds[0] < bounds[1] < bounds[2] == 99
    model = fitted(KINDS[name], 500, 0.5, mechanism=mechanism)
    assert not hasattr(model.set_params(epsilon=8.0).fit(ROWS, COUNTS), "residual_bound_")


def test_a_public_number_of_records_decides_too() -> None:
    for n_records, said in ((500, True), (60_000, False)):
        model = fitted(LinearRegression, n_records, 2.0, n_records=n_records)
        assert hasattr(model, "residual_bound_") == said


def test_a_mechanism_that_does_not_widen_says_so() -> None:
    model = fitted(PoissonRegressor, 60_000, 8.0, mechanism="output_perturbation")
    assert model.residual_bound_ == 3.5


def test_kernels_say_so() -> None:
    model = KernelRidge(0.5, 1e-6, n_frequencies=3, label_range=(0, 14), random_state=1)
    assert SENTENCE in render(facts_of(model.fit(ROWS[:500], COUNTS[:500])))


def test_other_models_have_no_such_bias() -> None:
    for model in (
        fitted(HuberRegressor, 500, 0.5),  # its bound is the model
        fitted(LinearRegression, 500, 0.5, mechanism="sufficient_statistics"),
        fitted(PoissonRegressor, 500, 0.5, regularization=5.0),  # starts with the widest loss
        LinearRegression(math.inf, 0.0, **KNOWN).fit(ROWS[:500], COUNTS[:500]),
    ):
        assert not hasattr(model, "residual_bound_")
        assert SENTENCE not in render(facts_of(model))


def test_the_sentence_is_about_a_bias_that_is_there() -> None:
    """Large residuals count less, and exponential ones are all positive."""
    rows, n_fits = ROWS[:3000], 16
    labels = np.clip(rows @ [0.8, -0.5] + RNG.exponential(1.0, 3000), -4, 8)
    known: Any = {"row_norm": 1.5, "label_range": (-4, 8), "inference": 0.2}
    exact = LinearRegression(math.inf, 0.0, **known).fit(rows, labels)
    fits = [
        LinearRegression(1.0, 1e-6, random_state=seed, **known).fit(rows, labels)
        for seed in range(n_fits)
    ]
    errors = np.median([fit.standard_errors_[-1] for fit in fits])
    bias = np.mean([fit.estimates_[-1] for fit in fits]) - exact.estimates_[-1]
    assert bias < -errors / 2
    assert all(SENTENCE in str(fit.summary()) for fit in fits)
