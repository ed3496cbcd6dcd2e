"""Every record is in one part: it trains one candidate, or it helps to choose among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.linear_model import LogisticRegression
from tacit.noise.selection.finite import select
from tacit.queries import evaluation
from tacit.tuning import DisjointSearch, disjoint
from tacit.tuning.trials import Runner


def test_parts_are_disjoint_and_the_last_one_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.0, 1.0, (300, 2))
    labels = (rows[:, 0] > 0.0).astype(int)
    trained: list[Any] = []
    chosen: list[Any] = []
    utilities: list[Any] = []
    run = Runner.run

    def running(self: Any, draw: Any, part: Any, *rest: Any) -> Any:
        trained.append(part._records.read())
        return run(self, draw, part, *rest)

    def choosing(runs: Any, last: Any, *rest: Any) -> Any:
        chosen.append((runs, last._records.read()))
        return choose(runs, last, *rest)

    def selecting(bounded: Any, epsilon: float, **named: Any) -> Any:
        utilities.append((bounded, named["monotone"]))
        return select(bounded, epsilon, **named)

    choose = disjoint._chosen
    monkeypatch.setattr(Runner, "run", running)
    monkeypatch.setattr(disjoint, "_chosen", choosing)
    monkeypatch.setattr(evaluation, "select", selecting)
    model = LogisticRegression(classes=[0, 1], row_norm=1.5)
    space = {"regularization": [1e-3, 30.0, 300.0]}
    fitted = DisjointSearch(model, space, epsilon=50.0).fit(rows, labels)

    ((runs, last),) = chosen
    parts = [*trained, last]
    assert len(trained) == 3
    place = {tuple(row): i for i, row in enumerate(rows.tolist())}
    seen = [place[tuple(row)] for own, _ in parts for row in own.tolist()]
    assert sorted(seen) == list(range(300))
    assert [label for _, own in parts for label in own] == labels[seen].tolist()
    assert all(30 < len(own) < 130 for own, _ in parts)

    ((bounded, monotone),) = utilities
    wrong = [(run.model.predict(last[0]) != last[1]).sum() for run in runs]
    assert bounded.value.tolist() == [-float(n) for n in wrong]
    assert bounded.sensitivity == 1.0
    assert monotone is True
    assert fitted.best_estimator_ is not None
