from __future__ import annotations

import numpy as np
import pytest

from tacit.erm import CannotSolve, NoisyGradient
from tacit.erm.minimization import KINDS, MECHANISMS
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.location import GeometricMedian
from tacit.privacy import Accountant, Budget
from tacit.report.wording import about_predictions, mechanism_title, mechanisms_for, planned

ROWS = np.random.default_rng(0).uniform(-1, 1, (500, 3))


def test_every_mechanism_has_a_name() -> None:
    for kind in KINDS.values():
        assert mechanism_title(kind.name) == kind.title
    assert mechanism_title("noisy_sgd") == "Noisy stochastic gradient descent"
    assert mechanism_title("") == ""


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_plan_has_a_sentence(delta: float) -> None:
    sentences = []
    for name, mechanism in MECHANISMS.items():
        if mechanism.uses_moments:
            model = LinearRegression(1.0, delta, label_range=(-1, 1), mechanism=name)
        else:
            model = LogisticRegression(1.0, delta, classes=[0, 1], n_records=5000, mechanism=name)
        try:
            sentences.append(planned(model.plan(5), chosen=True).noise)
        except CannotSolve:
            assert delta == 0.0
    assert len(set(sentences)) == len(sentences) >= (2 if delta == 0.0 else 5)
    assert all(s.endswith(".") and "nan" not in s.split() for s in sentences)


def test_alternatives_are_the_plans_that_would_have_been_made() -> None:
    # Labels of type bool: the classes are known from them, not declared.
    model = LogisticRegression(1.0, 1e-6, n_records=500).fit(ROWS, ROWS[:, 0] > 0)
    found = {row.name: row for row in mechanisms_for(model, model.plan_, None)}
    assert set(found) == set(MECHANISMS)
    assert [name for name, row in found.items() if row.chosen] == [model.plan_.mechanism.name]
    # the one that was run too: what its releases say of it is not what others can be compared with
    assert found["objective_perturbation"].excess_risk != model.plan_.excess_risk
    for name in ("objective_perturbation", "noisy_gradient", "output_perturbation"):
        other = LogisticRegression(1.0, 1e-6, n_records=500, classes=[0, 1], mechanism=name)
        assert found[name].excess_risk == other.plan(3).excess_risk
    assert found["sufficient_statistics"].excess_risk is None
    assert "SquaredLoss" in found["sufficient_statistics"].noise


def test_the_best_comes_first_and_what_does_not_apply_last() -> None:
    model = LogisticRegression(1.0, 1e-6).fit(ROWS, ROWS[:, 0] > 0)
    risks = [row.excess_risk for row in mechanisms_for(model, model.plan_, None)]
    known = [risk for risk in risks if risk is not None]
    assert known == sorted(known)
    assert risks[: len(known)] == known


def test_a_regressor_changes_its_loss_with_its_mechanism() -> None:
    model = LinearRegression(1.0, 1e-6, label_range="infer").fit(ROWS, ROWS[:, 0])
    found = {row.name: row.excess_risk for row in mechanisms_for(model, model.plan_, None)}
    assert found["sufficient_statistics"] is not None


def test_planning_charges_nothing() -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    model = LogisticRegression(1.0, 1e-6, accountant=accountant).fit(ROWS, ROWS[:, 0] > 0)
    mechanisms_for(model, model.plan_, None)
    assert model.accountant is accountant


def test_an_expected_number_of_records_sharpens_all_predictions() -> None:
    model = LogisticRegression(1.0, 1e-6).fit(ROWS, ROWS[:, 0] > 0)
    few = mechanisms_for(model, model.plan_, 1000)
    many = mechanisms_for(model, model.plan_, 1_000_000)
    for row in few:
        twin = next(other for other in many if other.name == row.name)
        if row.excess_risk is not None and twin.excess_risk is not None:
            assert row.excess_risk > twin.excess_risk
    assert "1,000 records" in about_predictions(model.plan_, 1000)
    assert "private" in about_predictions(model.plan_, None)


@pytest.mark.parametrize("mechanism", [NoisyGradient(n_steps=7), "noisy_gradient"])
def test_what_ran_is_what_is_shown(mechanism: object) -> None:
    model = LogisticRegression(1.0, 1e-6, mechanism=mechanism).fit(ROWS, ROWS[:, 0] > 0)
    (chosen,) = (row for row in mechanisms_for(model, model.plan_, None) if row.chosen)
    assert dict(chosen.settings)["n_steps"] == model.plan_.settings["n_steps"]


def test_an_estimator_with_one_mechanism() -> None:
    model = GeometricMedian(1.0, 1e-6).fit(ROWS)
    rows = mechanisms_for(model, model.plan_, None)
    assert rows[0].name == "noisy_gradient"
    refused = {row.name for row in rows if row.excess_risk is None}
    assert refused >= {"objective_perturbation", "output_perturbation", "sufficient_statistics"}
