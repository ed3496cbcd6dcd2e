from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from tacit.cli.curves import Settings, measured, split, which_apply
from tacit.cli.errors import Refused
from tacit.cli.models import MODELS, model_kind
from tacit.erm.planner import CANDIDATES
from tacit.models import Predicts
from tacit.preprocessing import ClassTarget, Number, NumberTarget, Schema

RNG = np.random.default_rng(1)
AGE = RNG.uniform(0, 100, 1200)
TABLE = pa.table({"age": AGE, "ill": np.where(AGE > 40, "yes", "no"), "cost": AGE / 10})
ILL = Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes")))
COST = Schema((Number("age", 0, 100),), NumberTarget("cost", 0, 10))


def settings(*mechanisms: str, repeats: int = 2) -> Settings:
    return Settings((1.0, 5.0), 1e-6, mechanisms, repeats)


def test_split_loses_nobody() -> None:
    train, test = split(TABLE, 0.25)
    assert (train.num_rows, test.num_rows) == (900, 300)
    ages = np.concatenate([train["age"].to_numpy(), test["age"].to_numpy()])
    assert sorted(ages) == sorted(AGE)
    with pytest.raises(Refused, match="too few"):
        split(TABLE.slice(0, 1), 0.25)


def test_floor_and_ceiling() -> None:
    steps: list[None] = []
    tried = settings("objective_perturbation")
    curves = measured(model_kind("logistic"), ILL, TABLE, tried, 0.25, lambda: steps.append(None))
    test = split(TABLE, 0.25)[1]
    assert curves.floor == np.mean(np.asarray(test["ill"]) == "yes")
    assert curves.ceiling > 0.97
    assert len(steps) == tried.n_fits == 5
    assert [(p.mechanism, p.epsilon) for p in curves.points] == [
        ("objective_perturbation", 1.0),
        ("objective_perturbation", 5.0),
    ]
    assert all(0.0 <= p.mean <= 1.0 and math.isfinite(p.sd) for p in curves.points)


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if m.predicts is Predicts.NUMBERS])
def test_scores_of_numbers(name: str) -> None:
    tried = settings("noisy_gradient", repeats=1)
    curves = measured(model_kind(name), COST, TABLE, tried, 0.25, lambda: None)
    assert curves.floor == 0.0
    assert curves.ceiling > 0.7
    assert curves.points[0].sd == 0.0


def test_mechanisms_that_do_not_apply_are_listed() -> None:
    usable, refused = which_apply(model_kind("logistic"), ILL, settings())
    assert usable.mechanisms == CANDIDATES[:-1]
    assert "SquaredLoss" in refused["sufficient_statistics"]
    with pytest.raises(Refused, match="no mechanism applies"):
        which_apply(model_kind("logistic"), ILL, settings("sufficient_statistics"))
    with pytest.raises(Refused, match="unknown"):
        which_apply(model_kind("logistic"), ILL, settings("magic"))
