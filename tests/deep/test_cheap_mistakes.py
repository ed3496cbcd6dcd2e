"""Mistakes in a training that need no record to be seen: each is refused, and costs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tacit.deep import (
    NeuralClassifier,
    NeuralRegressor,
    OrderedTrainer,
    Progress,
    PublicData,
    PublicEvaluation,
    decayed_late,
)
from tacit.deep.optimizer_step import rate_factors
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Accountant, Budget, Relation
from tests.deep.helpers import CROSS_ENTROPY, network, table, trainer

X, Y = table()
NUMBERS, WORDS = X[:, 0], np.where(Y > 0, "yes", "no")
Call = Callable[[Accountant], Any]


def train(x: Any = X, y: Any = Y, optimizer: Any = None, **told: Any) -> Call:
    def call(accountant: Accountant) -> None:
        model = told.get("model") or network()
        made = optimizer(model) if optimizer else None
        given = {**told, "model": model, "optimizer": made}
        trainer(**given, accountant=accountant).fit(x, y)

    return call


def in_order(y: Any = Y, optimizer: Any = None, **told: Any) -> Call:
    def call(accountant: Accountant) -> None:
        model = network()
        made = optimizer(model) if optimizer else torch.optim.SGD(model.parameters(), lr=0.5)
        budget = Budget(2.0, 1e-5, Relation.REPLACE)
        known = {"n_records": 60, "batch_size": 30, **told}
        OrderedTrainer(model, CROSS_ENTROPY, made, budget, **known, accountant=accountant).fit(X, y)

    return call


def classify(y: Any = Y, **told: Any) -> Call:
    known = {"classes": [0, 1], "n_records": 60, "n_steps": 3, "hidden": (4,), **told}
    return lambda a: NeuralClassifier(**known, accountant=a).fit(X, y)


def regress(y: Any = NUMBERS, **told: Any) -> Call:
    known = {"label_range": (-1, 1), "n_records": 60, "n_steps": 3, "hidden": (4,), **told}
    return lambda a: NeuralRegressor(**known, accountant=a).fit(X, y)


def late(**told: Any) -> Call:
    known = {"classes": [0, 1], "n_records": 60, "n_steps": 3, "hidden": (4,), **told}
    steps = [("s", PrivateStandardScaler(bounds=(-1, 1))), ("m", NeuralClassifier(**known))]
    return lambda a: PrivatePipeline(steps, accountant=a).fit(X, Y)


class NeedsClosure(torch.optim.SGD):
    def step(self, closure: Any) -> Any:
        return super().step(closure)


def lbfgs(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(model.parameters())


def public(x: Any = X, metric: Any = None) -> list[Any]:
    return [PublicEvaluation(PublicData(x, Y), metric)]


MISTAKES: dict[str, tuple[Call, str]] = {
    "schedule missing": (train(schedule=None), "schedule must be a function"),
    "schedule a number": (train(schedule=0.5), "schedule must be a function"),
    "schedule without argument": (train(schedule=lambda: 1.0), r"schedule\(0\) raised TypeError"),
    "schedule of words": (train(schedule=lambda p: "x"), r"schedule\(0\) must be a factor"),
    "schedule of NaN": (train(schedule=lambda p: math.nan), "finite and at least 0"),
    "schedule of nothing": (train(schedule=lambda p: None), "finite and at least 0"),
    "schedule below 0": (train(schedule=lambda p: -1.0), "finite and at least 0"),
    "schedule that fails late": (train(schedule=lambda p: 1 / (0.5 - p)), r"schedule\(0.5\)"),
    "callback a number": (train(callbacks=[3]), "cannot be called"),
    "callbacks without a list": (train(callbacks=lambda m: None), "must be a sequence"),
    "callback without argument": (train(callbacks=[lambda: None]), "take one argument"),
    "callback a class": (train(callbacks=[Progress]), r"pass Progress\(\)"),
    "public rows of two columns": (train(callbacks=public(X[:, :2])), "could not score"),
    "public rows without labels": (train(callbacks=public(X[1:])), "different lengths"),
    "metric of one argument": (train(callbacks=public(metric=lambda o: 1.0)), "could not score"),
    "optimizer with a closure": (train(optimizer=lbfgs), "evaluates the loss by itself"),
    "optimizer that needs one": (
        train(optimizer=lambda m: NeedsClosure(m.parameters(), lr=0.1)),
        "evaluates the loss by itself",
    ),
    "optimizer of sparse gradients": (
        train(optimizer=lambda m: torch.optim.SparseAdam(m.parameters())),
        "sparse gradients",
    ),
    "optimizer of another model": (
        train(optimizer=lambda m: torch.optim.SGD(network().parameters(), lr=0.1)),
        "every trained parameter",
    ),
    "loss of all records": (train(loss=nn.CrossEntropyLoss()), "one number for each record"),
    "loss of another shape": (train(loss=nn.MSELoss(reduction="none")), "could not be run"),
    "columns": (train(X[:, :2]), "could not be run"),
    "too few targets": (train(y=Y[:-1]), "different lengths"),
    "targets of words": (train(y=WORDS), "y must hold numbers"),
    "checkpoint in no folder": (train(checkpoint="no/such/folder/run"), "not an existing folder"),
    "checkpoint a number": (train(checkpoint=3), "checkpoint must be the path"),
    "source a number": (train(source=3), "source must be a source of randomness"),
    "schedule in order": (in_order(schedule=None), "schedule must be a function"),
    "callback in order": (in_order(callbacks=[lambda: None]), "take one argument"),
    "public rows in order": (in_order(callbacks=public(X[:, :2])), "could not score"),
    "optimizer in order": (in_order(optimizer=lbfgs), "evaluates the loss by itself"),
    "noise by name": (in_order(noise="tree"), "noise must be a CorrelatedNoise"),
    "too few targets in order": (in_order(y=Y[:-1]), "different lengths"),
    "network": (classify(network="mpl"), "network must be one of"),
    "network of one output": (classify(network=lambda s, n: nn.Linear(3, 1)), "end it with 2"),
    "network of seven outputs": (classify(network=lambda s, n: nn.Linear(3, 7)), "end it with 2"),
    "network of other rows": (classify(network=lambda s, n: nn.Linear(4, 2)), "could not be run"),
    "hidden one number": (classify(hidden=4), "hidden must be a sequence"),
    "shape of images": (classify(image_shape=(1, 2, 2)), "image_shape"),
    "learning rate": (classify(learning_rate=math.nan), "learning_rate must be positive"),
    "momentum": (classify(momentum=1.5), "momentum must be in"),
    "clip in words": (classify(clip="flat"), "max_grad_norm must be a real number"),
    "average": (classify(average_last=2), "average_last must be in"),
    "verbose in words": (classify(verbose="x"), "verbose must be a whole number"),
    "labels of words": (classify(WORDS), "no record would count"),
    "numbers of words": (regress(WORDS), r"by its type \(text\)"),
    "two outputs for a number": (regress(network=lambda s, n: nn.Linear(3, 2)), "end it with 1"),
    "late network": (late(network="mpl"), "network must be one of"),
    "late learning rate": (late(learning_rate=0.0), "learning_rate must be positive"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_nothing_is_charged(name: str) -> None:
    call, part = MISTAKES[name]
    relation = Relation.REPLACE if "order" in name or "noise" in name else Relation.ADD_REMOVE
    accountant = Accountant(Budget(100.0, 1e-3, relation))
    with pytest.raises((ValueError, TypeError), match=part):
        call(accountant)
    assert not accountant.events


@pytest.mark.parametrize("name", ["", "no/such/folder/run"])
def test_a_checkpoint_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    accountant = Accountant(Budget(100.0, 1e-3))
    with pytest.raises(ValueError, match=r"cannot be written.*Nothing was charged"):
        trainer(checkpoint=tmp_path / name, accountant=accountant).fit(X, Y)
    assert not accountant.events


def test_an_optimizer_with_a_scheduler_of_torch_is_taken() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rates = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    trainer(model, optimizer=optimizer, callbacks=[lambda m: rates.step()]).fit(X, Y)


def test_a_schedule_is_asked_once_for_each_step() -> None:
    asked: list[float] = []

    def schedule(progress: float) -> float:
        asked.append(progress)
        return decayed_late(progress)

    trainer(schedule=schedule, n_steps=4).fit(X, Y)
    assert asked == [0.0, 0.25, 0.5, 0.75]
    assert rate_factors(decayed_late, 4) == [decayed_late(p) for p in asked]
