"""What was drawn is what was charged: every release on the tape is in the guarantee.

A plan and its session agree even where a question draws more than it says. The tape does not: it
holds whatever noise was added to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tacit.erm.mechanisms.balanced as balanced_module
from tacit.linear_model import LogisticRegression
from tacit.noise import Entry, Release, Source, recording
from tacit.noise.exact.lattice import Ahead
from tacit.privacy import Budget, Composed, Guarantee, Relation
from tacit.queries import Facts, NoisySum, Private
from tacit.queries.base import Array
from tacit.registry import MODELS
from tests.declared import PROBLEMS, made
from tests.test_replay_everything import CASES, DELTA, KNOWN

CENTRAL = [spec for spec in MODELS if Relation.ADD_REMOVE in spec.relations]
PLAIN = sorted(
    name for name in KNOWN[Relation.ADD_REMOVE] & set(CASES) if CASES[name].spec in CENTRAL
)
OP, NG, SS = "objective_perturbation", "noisy_gradient", "sufficient_statistics"


def charged(estimator: Any, rows: Any, labels: Any, **more: Any) -> bool:
    """Return whether what a fit promises covers all that it released."""
    told = {} if labels is None else {"y": labels}
    with recording() as tape:
        model = clone(estimator).fit(rows, **told, **more)
    drawn = Composed(tuple(entry.event for entry in tape.entries if isinstance(entry, Entry)))
    delta, promise = estimator.get_params().get("delta", 0.0), model.privacy_
    return Guarantee(drawn).epsilon(delta) <= promise.epsilon(delta) * (1 + 1e-9)


# The mechanisms of one loss with classes and one with numbers, and a mean.
QUICK = ("logistic-binary", "linear-number", "mean")


@pytest.mark.parametrize(
    "name",
    [n if n.startswith(QUICK) else pytest.param(n, marks=pytest.mark.slow) for n in PLAIN],
)
def test_every_estimator(name: str) -> None:
    example = CASES[name].example
    assert charged(CASES[name].estimator(Relation.ADD_REMOVE), example.rows, example.labels)


# Parameters, and which of weights and people come with the records.
VARIANTS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    *(("logistic-binary", {"class_weight": "balanced", "mechanism": m}, ()) for m in (OP, NG)),
    ("logistic-binary", {"class_weight": "balanced", "delta": 0.0}, ()),
    ("logistic-three", {"class_weight": "balanced", "max_weight": 2.0}, ("weights", "unit")),
    ("svc-binary", {"class_weight": "balanced", "mechanism": NG}, ("unit",)),
    *(("logistic-binary", {"inference": 0.2, "mechanism": m}, ()) for m in (OP, NG)),
    *(("linear-number", {"inference": 0.2, "mechanism": m}, ()) for m in (OP, NG, SS)),
    *(("poisson-count", {"inference": 0.2, "mechanism": m}, ("unit",)) for m in (OP, NG)),
    *(("linear-number", {"max_weight": 2.0, "mechanism": m}, ("weights",)) for m in (OP, NG, SS)),
    *(("logistic-binary", {"mechanism": m}, ("unit",)) for m in (OP, NG)),
    ("mean-ball", {"inference": 0.2}, ("unit",)),
    ("median-middle", {"inference": 0.2}, ("unit",)),
]


@pytest.mark.parametrize(("name", "parameters", "brings"), VARIANTS, ids=str)
def test_weights_people_and_errors(
    name: str, parameters: dict[str, Any], brings: tuple[str, ...]
) -> None:
    spec, example = PROBLEMS[name]
    n, more = len(example.rows), dict[str, Any]()
    if "weights" in brings:
        more["sample_weight"] = np.linspace(0.0, 3.0, n)
    if "unit" in brings:
        more["unit"] = np.arange(n) // 2
    estimator = made(spec, example, **{"delta": DELTA, **parameters})
    assert charged(estimator, example.rows, example.labels, **more)


class Forgetful(NoisySum):
    """A question that is answered a hundred times at the price of once."""

    def answer(
        self, records: Private, facts: Facts, source: Source, noise: Ahead | None = None
    ) -> Release[float | Array]:
        return [super(Forgetful, self).answer(records, facts, source) for _ in range(100)][-1]


def test_counts_that_neither_plan_nor_session_knows_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A test of the test."""
    plain = balanced_module._class_counts

    def forgotten(budget: Budget) -> NoisySum:
        counts = plain(budget)  # which have a hundredth of the budget
        return Forgetful(counts.statistic, counts.noise)

    monkeypatch.setattr(balanced_module, "_class_counts", forgotten)
    _, example = PROBLEMS["logistic-binary"]
    model = LogisticRegression(1.0, DELTA, row_norm=1.5, class_weight="balanced")
    assert not charged(model, example.rows, example.labels)
