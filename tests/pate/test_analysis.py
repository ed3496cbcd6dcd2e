"""What `benchmarks/pate_analysis.py` says of teachers on public data."""

from __future__ import annotations

import numpy as np
from pate_analysis import NOT_PRIVATE, analysis
from sklearn.naive_bayes import GaussianNB

from tacit.pate import PATEClassifier


def test_more_noise_gives_fewer_right_answers_at_a_lower_cost() -> None:
    rng = np.random.default_rng(0)
    rows, pool = rng.standard_normal((4000, 2)), rng.standard_normal((100, 2))
    model = PATEClassifier(GaussianNB(), 40, classes=[False, True], delta=1e-5)
    found = analysis(model, rows, rows[:, 0] > 0, pool, pool[:, 0] > 0, noise_stds=(5, 160))
    assert found.right[0] > 0.9 > found.right[1]
    assert found.consensus.sum() == 100
    again = analysis(model, rows, rows[:, 0] > 0, pool, noise_stds=(5,))
    assert np.all(again.epsilon[:, 0] > found.epsilon[:, 0])  # at the last noise_std of each
    assert str(found).startswith(NOT_PRIVATE)
