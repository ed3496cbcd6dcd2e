from __future__ import annotations

import pytest

from tacit.erm.planner import KINDS, MECHANISMS
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.report.words import mechanism_title, noise_in_words


def test_every_mechanism_has_a_name() -> None:
    for kind in KINDS.values():
        assert mechanism_title(kind.name) == kind.title
    assert mechanism_title("noisy_sgd") == "Noisy stochastic gradient descent"
    assert mechanism_title("") == ""


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_plan_has_a_sentence(delta: float) -> None:
    from tacit.erm import CannotSolve

    sentences = []
    for name in MECHANISMS:
        if name == "sufficient_statistics":
            model = LinearRegression(1.0, delta, label_range=(-1, 1), mechanism=name)
        else:
            model = LogisticRegression(1.0, delta, classes=[0, 1], n_records=5000, mechanism=name)
        try:
            sentences.append(noise_in_words(model.plan(5)))
        except CannotSolve:
            assert delta == 0.0
    assert len(set(sentences)) == len(sentences) == (2 if delta == 0.0 else 5)
    assert all(s.endswith(".") and "nan" not in s.split() for s in sentences)
