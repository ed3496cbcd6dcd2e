"""A part held out: trained on the rest, evaluated on it, for the price of the dearer of the two."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.engine import Plan, release
from tacit.linear_model import LogisticRegression
from tacit.metrics import Evaluation, evaluate, evaluation_plan
from tacit.metrics.evaluate import evaluation_of
from tacit.noise import Release
from tacit.pipeline import PrivatePipeline
from tacit.privacy import Accountant, Budget, Guarantee, Parallel, Relation
from tacit.records.splits import parts_of
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.testing import replay
from tests.metrics.helpers import counted_on

BUDGET = Budget(1.0, 1e-6)


def held_out(rows: Any, labels: Any, accountant: Accountant | None = None) -> Evaluation:
    """Do what a pipeline does that holds out a part: one plan, one charge, one release."""
    model = LogisticRegression(1.0, 1e-6, row_norm=2.0, classes=[0, 1])
    planned = model.plan(rows.shape[1])
    judging = evaluation_plan(BUDGET, classes=[0, 1], bins=16)
    event = Parallel((planned.event, judging.event))

    def work() -> Release[Any]:
        part = parts_of((0.7, 0.3), b"key", Relation.ADD_REMOVE, rows, labels)
        model.fit(rows[part == 0], labels[part == 0])
        counted = counted_on(judging, model, rows[part == 1], labels[part == 1])
        return Release(counted.value, Parallel((model.privacy_.event, counted.event)))

    plan = Plan("parts", event, BUDGET, "a part is held out")
    released = release(plan, work, accountant=accountant)
    return evaluation_of(judging, released.value, released.privacy)


def records(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (n, 2))
    return rows, (rows[:, 0] + rng.normal(0, 0.5, n) > 0).astype(int)


def test_both_cost_the_dearer_of_the_two() -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    found = held_out(*records(20_000), accountant=accountant)
    assert found["accuracy"].value > 0.7
    assert accountant.spent() <= 1.0
    assert found.privacy_.epsilon(1e-6) == pytest.approx(1.0, rel=1e-3)
    assert Guarantee.from_json(found.privacy_.to_json()) == found.privacy_


def test_replay_on_neighbours() -> None:
    rows, labels = records(3_000)
    for place in (0, 1, 2, 3, 4):  # of either part
        without = np.arange(3_000) != place
        fewer = (rows[without], labels[without])
        assert replay(lambda data: held_out(*data), (rows, labels), fewer) >= 2


@pytest.mark.parametrize(
    "classes", [("yes", "no"), ("low", "mid", "high"), (2, 0, 1), (1, -1)], ids=str
)
def test_classes_may_be_declared_in_any_order(classes: tuple[Any, ...]) -> None:
    """Models have them sorted, as scikit-learn's do, and so has what counts their answers."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, 6_000)
    labels = np.array(classes)[(x * len(classes)).astype(int)]
    schema = Schema((Number("x", 0, 1),), ClassTarget("y", classes))
    steps = [("encode", SchemaEncoder(schema)), ("model", LogisticRegression())]
    made = PrivatePipeline(steps, epsilon=8.0, evaluate=0.4).fit({"x": x}, labels)
    held_out = made.evaluation_
    assert held_out is not None
    exact = evaluate(made, {"x": x, "y": labels}, epsilon=math.inf, classes=classes)
    assert exact["accuracy"].value == made.score({"x": x}, labels)
    for name, found in held_out.metrics.items():
        assert found.value == pytest.approx(exact[name].value, abs=0.15), name
    assert held_out.confusion is not None
    assert list(held_out.confusion.classes) == sorted(classes)
    with pytest.raises(ValueError, match="classes"):
        evaluate(made, {"x": x, "y": labels}, epsilon=8.0, classes=("other", "words"))
