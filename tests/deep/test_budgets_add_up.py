"""A budget takes networks whose epsilons and deltas add up to it."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.privacy import Accountant, Budget

pytest.importorskip("torch", reason="networks need torch")

from tacit.deep import NeuralClassifier

ROWS = np.random.default_rng(0).normal(size=(200, 3))


@pytest.mark.parametrize("parts", [(1.0,), (0.5, 0.5), (0.3, 0.7)])
def test_networks_whose_budgets_add_up_are_taken(parts: tuple[float, ...]) -> None:
    accountant = Accountant(Budget(1.0, 1e-6))
    for part in parts:
        model = NeuralClassifier(
            part, part * 1e-6, classes=[False, True], n_records=200, accountant=accountant
        )
        model.fit(ROWS, ROWS[:, 0] > 0)
    assert accountant.spent() <= 1.0
