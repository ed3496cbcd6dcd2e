from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from tacit.cli.curves import Settings, measured, split, which_apply
from tacit.cli.models import MODELS, model_kind
from tacit.cli.running import Refused
from tacit.erm.minimization import CANDIDATES
from tacit.registry import BALANCED_ACCURACY, Predicts
from tacit.schema import ClassTarget, Number, NumberTarget, Schema

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
    assert curves.score == "accuracy"
    assert curves.floor == np.mean(np.asarray(test["ill"]) == "yes")
    assert curves.ceiling > 0.97
    assert len(steps) == tried.n_fits == 5
    assert [(p.mechanism, p.epsilon) for p in curves.points] == [
        ("objective_perturbation", 1.0),
        ("objective_perturbation", 5.0),
    ]
    assert all(0.0 <= p.mean <= 1.0 and math.isfinite(p.sd) for p in curves.points)


def of_age(*cuts: float) -> tuple[Schema, pa.Table]:
    """Return a table whose classes are cut out of the ages, and its schema."""
    words = np.array(["a", "b", "c"])[np.searchsorted(cuts, AGE)]
    classes = ("c", "b", "a")[2 - len(cuts) :]
    schema = Schema((Number("age", 0, 100),), ClassTarget("t", classes))
    return schema, pa.table({"age": AGE, "t": words})


@pytest.mark.parametrize(
    ("cuts", "model", "score", "floor"),
    [
        ((40,), "logistic", "accuracy", None),
        ((10,), "logistic", "AUC", 0.5),
        ((10,), "svc", "AUC", 0.5),
        ((90,), "logistic", "AUC", 0.5),
        ((33, 66), "logistic", "accuracy", None),
        ((70, 90), "logistic", "balanced accuracy", 1 / 3),
    ],
)
def test_uneven_classes(
    cuts: tuple[float, ...], model: str, score: str, floor: float | None
) -> None:
    schema, table = of_age(*cuts)
    tried = settings("objective_perturbation", repeats=1)
    curves = measured(model_kind(model), schema, table, tried, 0.25, lambda: None)
    assert curves.score == score
    assert f"Score: {score}" in curves.rule
    assert floor is None or curves.floor == floor
    if score == "AUC":  # one feature orders the records perfectly, whichever class is rare
        assert curves.ceiling == 1.0


def test_twice_as_frequent_is_uneven() -> None:
    for rare, score in ((100, "AUC"), (101, "accuracy")):
        words = np.array(["a"] * rare + ["b"] * 200)
        table = pa.table({"age": np.arange(len(words)) / 4, "t": words})
        schema = Schema((Number("age", 0, 100),), ClassTarget("t", ("a", "b")))
        tried = settings("output_perturbation", repeats=1)
        curves = measured(model_kind("logistic"), schema, table, tried, 0.25, lambda: None)
        assert curves.score == score


def test_one_class_to_measure_on() -> None:
    schema, table = of_age(40)
    alone = table.filter(pa.compute.equal(table["t"], "b"))
    tried = settings("output_perturbation", repeats=1)
    curves = measured(model_kind("logistic"), schema, alone, tried, 0.25, lambda: None)
    assert curves.score == "accuracy"
    assert "all test records are of one class" in curves.rule


class Answers:
    def __init__(self, words: str) -> None:
        self.words = np.array(list(words))

    def predict(self, rows: object) -> Any:
        return self.words


def test_balanced_accuracy() -> None:
    labels = np.array(list("aaaaaaab"))
    for words, expected in (
        ("aaaaaaaa", 0.5),
        ("ababaaab", (5 / 7 + 1) / 2),
        ("cccccccb", 0.5),  # a class that does not occur
    ):
        assert BALANCED_ACCURACY.of(Answers(words), labels, labels) == pytest.approx(expected)


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
