"""How far one record moves the score of a try."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.linear_model import LinearRegression
from tacit.privacy import Relation
from tacit.tuning.scores import balance
from tests.tuning.test_search import logistic, records


@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, Relation.REPLACE])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_record_moves_a_score_by_its_sensitivity_and_no_more(
    kind: str, relation: Relation
) -> None:
    X, y = records(60)
    if kind == "classes":
        model: Any = logistic(epsilon=20.0).fit(X, y)
    else:
        model = LinearRegression(label_range=(0.0, 1.0), row_norm=1.5, epsilon=20.0).fit(X, y)
    right = model.predict(X[:1])
    wrong = right < 0.5
    first, other = (balance(model, X, np.append(one, y[1:]), relation) for one in (wrong, right))
    if relation.adds_or_removes:
        other = balance(model, X[1:], y[1:], relation)
    moved = abs(np.ravel(first.value)[0] - np.ravel(other.value)[0])
    assert 0.99 * first.sensitivity <= moved <= first.sensitivity
