"""Every registered aggregator: its proof, its noise, its answers, and neighbours of its votes."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pate_analysis import answers_to
from sklearn.linear_model import LogisticRegression

from tacit.pate import PATEClassifier
from tacit.pate.aggregators import AGGREGATORS, UNANSWERED, Aggregator
from tacit.privacy import Budget, Guarantee, Relation
from tacit.testing import replay

from .helpers import N_TEACHERS, OrderedTree, table

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
PROOFS = Path(__file__).parents[2] / "docs" / "proofs"
EXAMPLES = [example for kind in AGGREGATORS for example in kind.examples()]

each = pytest.mark.parametrize("aggregator", EXAMPLES, ids=repr)


def n_classes(aggregator: Aggregator) -> int:
    return min(3, aggregator.most_classes)


def asked(aggregator: Aggregator, **given: Any) -> PATEClassifier:
    return PATEClassifier(aggregator=aggregator, delta=1e-5, **given)


@pytest.mark.parametrize("kind", AGGREGATORS)
def test_it_says_what_it_is_and_where_its_proof_is(kind: type[Aggregator]) -> None:
    assert all((kind.name, kind.reason, kind.use, kind.cost))
    page, _, anchor = kind.proof.partition("#")
    titles = re.findall(r"^#+ (.*)$", (PROOFS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@each
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-5), Budget(8.0, 1e-6)], ids=str)
@pytest.mark.parametrize("n_queries", [20, 500])
def test_its_noise_is_the_least_within_the_budget(
    aggregator: Aggregator, budget: Budget, n_queries: int
) -> None:
    planned = aggregator.planned(budget, n_queries)
    spent = Guarantee(planned.event(n_queries, budget.relation)).epsilon(budget.delta)
    assert 0.99 * budget.epsilon < spent <= budget.epsilon * (1 + 1e-9)
    assert planned.planned(Budget(9.0, 1e-3), n_queries) == planned
    assert planned.undecided().planned(budget, n_queries) == planned


@each
def test_a_pure_budget_is_met_or_refused(aggregator: Aggregator) -> None:
    if not aggregator.is_pure:
        with pytest.raises(ValueError, match="needs a delta above 0"):
            aggregator.planned(Budget(1.0), 20)
        return
    planned = aggregator.planned(Budget(1.0), 20)
    assert Guarantee(planned.event(20, ADD)).epsilon(0.0) == pytest.approx(1.0)


@each
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=lambda r: r.value)
def test_it_is_replayed_on_neighbours(aggregator: Aggregator, relation: Relation) -> None:
    k = n_classes(aggregator)
    rows, labels, pool = table(n_classes=k)
    kept = slice(None, -1 if relation is REPLACE else None)
    other = np.vstack([rows[kept], [[90.0, -90.0, 70.0]]]), np.append(labels[kept], 0)
    # A seed, so that both runs split the records by one key.
    told: dict[str, Any] = {"classes": range(k), "relation": relation, "random_state": 3}
    model = PATEClassifier(
        OrderedTree(), N_TEACHERS, LogisticRegression(), 10, aggregator=aggregator, **told
    )

    def fit(data: Any) -> Any:
        return model.fit(data[0], data[1], pool)

    first = rows, labels
    assert replay(fit, first, other) == replay(fit, other, first) == len(model.plan().slots())


@each
@pytest.mark.parametrize("agreeing", [52.0, 100.0])
def test_what_is_released_is_what_was_planned(aggregator: Aggregator, agreeing: float) -> None:
    """Whatever the votes: the same answers are given, or not, at the same cost."""
    plan = asked(aggregator, n_queries=90, epsilon=3.0).plan(2)
    votes = np.tile([[agreeing, 100.0 - agreeing]], (90, 1))
    released = answers_to(plan.aggregator, votes, ADD)
    assert released.event == plan.event
    assert released.value.shape == (90,)
    assert np.sum(released.value != UNANSWERED) <= plan.settings.get("n_answers", 90)


@each
def test_what_a_plan_expects_is_what_happens(aggregator: Aggregator) -> None:
    plan = asked(aggregator, n_teachers=100, n_queries=100, epsilon=3.0).plan(2)
    n_answers = int(plan.settings.get("n_answers", 20_000))
    votes = np.tile([[70.0, 30.0]], (n_answers, 1))
    rounds = 1 + 3000 // n_answers
    released = [answers_to(plan.aggregator, votes, ADD).value == 0 for _ in range(rounds)]
    expected, n = plan.right(0.7), rounds * n_answers
    share = float(np.mean(released))
    assert abs(share - expected) < 6.5 * math.sqrt(expected * (1 - expected) / n) + 2e-3
