"""Small trainings."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tacit.deep import FlatClip, PrivateTrainer
from tacit.privacy import Budget

CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")
BUDGET = Budget(2.0, 1e-5)
Floats = npt.NDArray[np.float32]


def table(n: int = 60) -> tuple[Floats, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((n, 3)).astype(np.float32)
    return rows, (rows[:, 0] > 0).astype(np.int64)


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def trainer(model: nn.Module | None = None, **told: Any) -> PrivateTrainer:
    """A trainer of few steps; every argument can be told."""
    model = network() if model is None else model
    optimizer = told.pop("optimizer", None) or torch.optim.SGD(model.parameters(), lr=0.5)
    known: dict[str, Any] = {"n_records": 60, "batch_size": 30, "clip": FlatClip(0.5)}
    if not {"n_steps", "epochs", "noise_multiplier"} & set(told):
        known |= {"n_steps": 6, "noise_multiplier": 6.0}  # quicker than a calibration
    budget = told.pop("budget", BUDGET)
    loss = told.pop("loss", CROSS_ENTROPY)
    return PrivateTrainer(model, loss, optimizer, budget, **{**known, **told})


class Gradients(torch.optim.SGD):
    """An optimiser that keeps the gradients it is given."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=0.0)
        self.seen: list[npt.NDArray[np.float64]] = []

    def step(self, closure: Any = None) -> None:
        flat = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        self.seen.append(torch.cat(flat).double().numpy())
