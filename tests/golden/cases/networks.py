"""Networks: trainers with every clip and noise, estimators, dropout, directions, checkpoints."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from tacit.deep import (
    AdaptiveClip,
    AutomaticClip,
    BandedNoise,
    FlatClip,
    NeuralClassifier,
    NeuralRegressor,
    OrderedTrainer,
    PCALayer,
    PerLayerClip,
    PrivateTrainer,
    TreeNoise,
    decayed_late,
)
from tacit.noise import seeded_source
from tacit.privacy import Budget, Relation
from tests.golden.pinning import SEED, Case, Pins, encoded, event_pins, pinned

CLIPS: dict[str, Callable[[], Any]] = {
    "flat": lambda: FlatClip(0.5),
    "per_layer": lambda: PerLayerClip(0.5),
    "automatic": lambda: AutomaticClip(0.5),
    "adaptive": lambda: AdaptiveClip(0.5, count_noise=0.2),
}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
    "linear": lambda: nn.Linear(3, 2),
    "dropout": lambda: nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.4), nn.Linear(6, 2)),
    "norm": lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 2), nn.Flatten(), nn.Linear(4, 2)
    ),
    "recurrent": lambda: _Recurrent(),
}


class _Recurrent(nn.Module):
    """A layer that is used once for each column."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.Linear(3, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.shape[0], 2)
        for place in range(x.shape[1]):
            state = torch.tanh(self.cell(torch.cat([x[:, place : place + 1], state], 1)))
        made: torch.Tensor = self.out(state)
        return made


def _table() -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((60, 3)).astype(np.float32)
    return rows, (rows[:, 0] > 0).astype(np.int64)


def _alone(function: Case) -> Case:
    """Return a case that runs on one thread, with torch's generator as it was."""

    def case() -> Pins:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(3)
                return dict(function())
        finally:
            torch.set_num_threads(threads)

    return case


def _released(trainer: Any, model: nn.Module) -> Pins:
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    return pinned(trainer, weights=weights)


def _trained(model: str, optimizer: Any = torch.optim.SGD, **told: Any) -> Case:
    def case() -> Pins:
        network = MODELS[model]()
        known: dict[str, Any] = {"n_records": 60, "batch_size": 30, "clip": FlatClip(0.5)}
        if not {"n_steps", "epochs", "noise_multiplier"} & set(told):
            known |= {"n_steps": 5, "noise_multiplier": 6.0}
        trainer = PrivateTrainer(
            network,
            nn.CrossEntropyLoss(reduction="none"),
            optimizer(network.parameters(), lr=0.3),
            Budget(2.0, 1e-5),
            source=seeded_source(SEED),
            **{**known, **told},
        )
        return _released(trainer.fit(*_table()), network)

    return _alone(case)


def _ordered(model: str, noise: Any, **told: Any) -> Case:
    def case() -> Pins:
        network = MODELS[model]()
        trainer = OrderedTrainer(
            network,
            nn.CrossEntropyLoss(reduction="none"),
            torch.optim.SGD(network.parameters(), lr=0.2),
            Budget(3.0, 1e-5, Relation.REPLACE),
            n_records=60,
            source=seeded_source(SEED),
            noise=noise,
            **{"batch_size": 10, "epochs": 2, "clip": FlatClip(0.1), **told},
        )
        return _released(trainer.fit(*_table()), network)

    return _alone(case)


def _estimator(of: type[Any], **told: Any) -> Case:
    def case() -> Pins:
        rows, classes = _table()
        few: dict[str, Any] = {"n_records": 60, "n_steps": 4, "hidden": (4,), "random_state": SEED}
        if of is NeuralClassifier:
            few["classes"], labels = [0, 1], classes
        else:
            few["label_range"], labels = (-3.0, 3.0), rows @ np.float32([1.0, -1.0, 0.5])
        model = of(2.0, 1e-5, **{**few, **told}).fit(rows, labels)
        made = pinned(model, predicted=model.predict(rows)[:8])
        # what a training had cost on the way
        made["event_by_epoch"] = encoded([each.epsilon for each in model.epsilon_by_epoch()][:2])
        return made

    return _alone(case)


def _directions() -> Pins:
    layer = PCALayer(2, 1.0, 1e-5, row_norm=2.0, random_state=SEED).fit(_table()[0])
    assert layer.privacy_ is not None
    return {
        "event": event_pins(layer.privacy_.event),
        "released": {"directions": encoded(layer.directions.numpy())},
    }


class _Stop(Exception):
    pass


def _resumed() -> Pins:
    """A training that is stopped after three of six steps, with keys in place of a seed."""

    def stop(moment: Any) -> None:
        if moment.step == 3:
            raise _Stop

    def trainer(network: nn.Module, folder: str, *callbacks: Any) -> PrivateTrainer:
        return PrivateTrainer(
            network,
            nn.CrossEntropyLoss(reduction="none"),
            torch.optim.SGD(network.parameters(), lr=0.3, momentum=0.5),
            Budget(2.0, 1e-5),
            n_records=60,
            batch_size=30,
            n_steps=6,
            noise_multiplier=6.0,
            clip=AdaptiveClip(0.5, count_noise=0.2),
            average_last=0.5,
            checkpoint=f"{folder}/run",
            checkpoint_every=2,
            callbacks=callbacks,
        )

    with tempfile.TemporaryDirectory() as folder:
        network = MODELS["mlp"]()
        try:
            trainer(network, folder, stop).fit(*_table())
        except _Stop:
            network = MODELS["mlp"]()
        return _released(trainer(network, folder).fit(*_table()), network)


def _two_layers(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(shape[0], 5), nn.Dropout(0.3), nn.Linear(5, n_outputs))


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    made: dict[str, Case] = {}
    for model in MODELS:
        for clip, make in CLIPS.items():
            made[f"trainer-{model}-{clip}"] = _trained(model, clip=make())
    made["trainer-calibrated"] = _trained("mlp", n_steps=5)
    made["trainer-until_spent"] = _trained("mlp", noise_multiplier=5.0)
    made["trainer-epochs"] = _trained("mlp", epochs=2)
    made["trainer-schedule"] = _trained("mlp", schedule=decayed_late, average_last=0.5)
    made["trainer-micro_batch"] = _trained("mlp", micro_batch=7)
    made["trainer-adam"] = _trained("mlp", optimizer=torch.optim.Adam)
    noises = {"tree": TreeNoise(), "banded": BandedNoise(3), "independent": BandedNoise(1)}
    for model in ("mlp", "dropout"):
        for word, noise in noises.items():
            made[f"ordered-{model}-{word}"] = _ordered(model, noise)
    made["ordered-per_layer"] = _ordered("mlp", TreeNoise(), clip=PerLayerClip(0.1))
    estimators: dict[str, type[Any]] = {
        "classifier": NeuralClassifier,
        "regressor": NeuralRegressor,
    }
    for word, of in estimators.items():
        made[word] = _estimator(of)
        made[f"{word}-linear"] = _estimator(of, network="linear")
        made[f"{word}-two_layers"] = _estimator(of, hidden=(4, 3))
        made[f"{word}-dropout"] = _estimator(of, network=_two_layers)
        for clip, make in CLIPS.items():
            made[f"{word}-{clip}"] = _estimator(of, clip=make(), batch_size=30)
    return {**made, "directions": _alone(_directions), "resumed": _alone(_resumed)}
