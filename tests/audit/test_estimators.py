"""Audits of tacit's classifiers, with the noise they should have and with less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.audit import Audit, audit
from tacit.audit.estimators import Inversion
from tacit.erm.minimization import run_plan
from tacit.linear_model import LinearSVC, LogisticRegression
from tacit.noise.perturbed_minimizer import GaussianPerturbation
from tacit.records import MemoryRecords
from tacit.report import write_audit
from tests.cli.helpers import refused, run

Array = npt.NDArray[np.float64]


def model(epsilon: float, **more: Any) -> LogisticRegression:
    known = {"row_norm": 1.0, "classes": [0, 1], "regularization": 1.0, "fit_intercept": False}
    return LogisticRegression(epsilon, 1e-5, **{**known, **more})


def cut(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """Leave so much of the noise on an objective."""
    draw = GaussianPerturbation.draw
    monkeypatch.setattr(
        GaussianPerturbation, "draw", lambda self, source: share * draw(self, source)
    )


def spread_of(found: Audit) -> float:
    """Return the standard deviation of the recovered noise that the notes tell."""
    return float(found.notes[1].split("deviation ")[1].split(" of 1")[0])


def test_the_noise_of_objective_perturbation_is_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = model(1.0, fit_intercept=True).plan(3)
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((40, 3)), np.sign(rng.standard_normal(40))
    records = MemoryRecords(rows, labels, plan.problem.objective.bounds)
    drawn: list[Array] = []
    draw = GaussianPerturbation.draw

    def remembered(self: GaussianPerturbation, source: Any) -> Array:
        drawn.append(draw(self, source))
        return drawn[-1]

    monkeypatch.setattr(GaussianPerturbation, "draw", remembered)
    released = np.asarray(run_plan(plan, records, None).value)
    score = Inversion(plan, records, np.ones(4))
    recovered = score.noise(released)
    # What is aside is the rest of it: orthogonal, and of the same length in all.
    squares = score(released) ** 2 + np.sum(np.square(score.aside(released)))
    assert squares == pytest.approx(np.sum(np.square(recovered / plan.settings["noise_std"])))
    assert score.aside(released).shape == (3,)
    # The noise on the output is a ten-thousandth, times the curvature.
    np.testing.assert_allclose(recovered, drawn[-1], atol=0.02 * plan.settings["noise_std"])


def test_an_audit_finds_most_of_what_is_claimed_at_epsilon_8(tmp_path: Path) -> None:
    found = audit(model(8.0), fits=300, copies=300)
    # The bound on mu is 1.4 within 0.14, and 7 of these below and above are epsilon 2 and 12.
    assert 2.0 < found.findings[2].epsilon <= found.strongest.epsilon < 13.0
    assert "no further apart than declared" in found.notes[0]
    assert spread_of(found) == pytest.approx(1.0, abs=0.4)
    write_audit(tmp_path / "a.html", found)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert found.conclusion in page.replace("&#x27;", "'")
    assert page.count("<polyline") >= 2
    assert "passed" not in page.lower()


def test_half_the_noise_is_contradicted(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 0.5)
    found = audit(model(8.0), fits=300, copies=300)
    assert found.above_claim
    assert "CONTRADICTED" in found.conclusion
    assert "Kolmogorov-Smirnov p = " in found.notes[1]
    assert spread_of(found) == pytest.approx(0.5, abs=0.2)


def test_most_of_epsilon_1_is_found_by_few_fits_with_the_same_noise() -> None:
    found = audit(model(1.0), fits=400)
    # 0.96 in the middle; the spread of 1,200 numbers is known to 0.02, of which these are 6 and 5
    assert 0.82 < found.findings[2].epsilon < 1.07


def test_noise_cut_by_a_third_is_contradicted_by_few_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    cut(monkeypatch, 0.7)
    found = audit(model(1.0), fits=400)
    assert found.findings[2] in found.above_claim
    assert 1.15 < found.findings[2].epsilon < 1.6


def test_classifiers_whose_noise_cannot_be_recovered_are_looked_at_from_outside() -> None:
    for estimator in (
        model(8.0, regularization=None),
        LogisticRegression(8.0, 0.0, row_norm=1.0, classes=[0, 1]),
        LinearSVC(8.0, 1e-5, row_norm=1.0, classes=[0, 1], mechanism="noisy_gradient"),
    ):
        found = audit(estimator, fits=40, copies=50)
        assert "not recovered" in found.notes[1]
        assert found.strongest.epsilon < 30.0
    with pytest.raises(ValueError, match="two classes"):
        audit(model(1.0, classes=[0, 1, 2]))
    for other in ("logistic", LogisticRegression):
        with pytest.raises(TypeError, match=r"audit takes tacit's .*; audit_fits takes any code"):
            audit(other)


def test_the_command_says_what_was_found(tmp_path: Path) -> None:
    done = run("audit", "-e", 8, "--fits", 60, "--html", tmp_path / "a.html")
    assert done.exit_code in (0, 1), done.output
    assert "by the difference of means" in done.output
    assert (tmp_path / "a.html").exists()
    assert "passed" not in done.output.lower()
    assert "logistic, svc" in refused("audit", "-e", 1, "--model", "forest")
    assert "fits" in refused("audit", "-e", 1, "--fits", 1)
    assert "exists" in refused("audit", "-e", 1, "--html", tmp_path / "a.html")


def test_the_command_fails_where_the_claim_is_contradicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut(monkeypatch, 0.2)
    done = run("audit", "-e", 8, "--fits", 80, "--json")
    assert done.exit_code == 1
    assert "CONTRADICTED" in done.output
