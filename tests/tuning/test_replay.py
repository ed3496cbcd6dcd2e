"""Searches replayed on neighbouring records, with the first run's noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.noise import Entry, Release, recording
from tacit.noise.gaussian import gaussian
from tacit.noise.release import priced
from tacit.noise.selection.finite import select
from tacit.privacy import BestOf, Gaussian, OneOf
from tacit.queries import evaluation
from tacit.queries import noise as noisy_sum
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_model import TableModel
from tacit.testing import replay
from tacit.tuning import (
    Capped,
    DisjointSearch,
    FixedTries,
    PrivateSearch,
    TruncatedNegativeBinomial,
)

SPACE = {"regularization": [30.0, 300.0]}
Records = tuple[Any, Any]


def records(n: int = 120) -> Records:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(n) > 0).astype(float)


def neighbour(data: Records, i: int, relation: str) -> Records:
    X, y = data
    if relation == "replace":
        X, y = X.copy(), y.copy()
        X[i], y[i] = (1e9, -1e9), 1 - y[i]
        return X, y
    return np.delete(X, i, axis=0), np.delete(y, i)


def model(kind: str, relation: str) -> Any:
    n = 120 if relation == "replace" else None
    if kind == "classes":
        return LogisticRegression(classes=[0.0, 1.0], row_norm=1.5, n_records=n)
    return LinearRegression(label_range=(0.0, 1.0), row_norm=1.5, n_records=n)


def whole(search: Any) -> Any:
    return lambda data: search.fit(*data)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("kind", ["classes", pytest.param("numbers", marks=pytest.mark.slow)])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_whole_search(kind: str, relation: str, delta: float) -> None:
    if kind == "numbers" and delta == 0.0:
        pytest.skip("its fits are those of a delta")
    settings: dict[str, Any] = {"relation": relation, "delta": delta, "random_state": 5}
    parts = DisjointSearch(model(kind, relation), SPACE, epsilon=3.0, **settings)
    law = FixedTries(3) if delta else Capped(TruncatedNegativeBinomial(1.0, 0.1), 4)
    tries = PrivateSearch(model(kind, relation), SPACE, law=law, epsilon=3.0, **settings)
    for search, least in ((tries, 4), (parts, 3)):
        assert replay(whole(search), records(), neighbour(records(), 60, relation)) >= least


def test_every_score_is_a_release_that_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score outside the mechanism, exact and unpaid for, would not be on the tape."""
    law = FixedTries(6)
    search = PrivateSearch(
        model("classes", "add_remove"), SPACE, law=law, epsilon=3.0, random_state=5
    )

    def n_scores() -> int:
        with recording() as tape:
            search.fit(*records())
        event = search.plan_.event
        assert isinstance(event, BestOf)
        assert isinstance(event.base, OneOf)
        (score,) = {one.parts()[1] for one in event.base.events}  # Parallel((fit, score))
        assert isinstance(score, Gaussian)
        return sum(isinstance(entry, Entry) and entry.event == score for entry in tape.entries)

    assert n_scores() == law.count + 1  # and one of the default, before any record is read

    def quiet(total: Any, z: float, source: Any) -> Any:
        """Return scores, which are one number, as they are."""
        if np.ndim(total.value):
            return gaussian(total, z, source)
        event = Gaussian(z, total.relation)
        return Release(total.value, event if source.is_secure else priced(event, source))

    monkeypatch.setattr(noisy_sum, "gaussian", quiet)
    assert n_scores() == 0


@pytest.mark.parametrize("search", [DisjointSearch, PrivateSearch])
def test_a_record_of_a_table_that_does_not_count_moves_no_other(search: Any) -> None:
    """Under REPLACE parts go by the position in the table as it came."""
    X, y = records()
    schema = Schema(
        (Number("a", -1, 1), Number("b", -1, 1)), ClassTarget("ill", ("0", "1")), n_records=120
    )
    words = np.where(y > 0, "1", "0").astype(object)
    odd = words.copy()
    odd[0] = "not a class"
    table = {"a": X[:, 0], "b": X[:, 1]}
    law = {} if search is DisjointSearch else {"law": FixedTries(3)}
    made = search(
        TableModel(schema, LogisticRegression()),
        {"estimator__regularization": [3.0, 30.0]},
        relation="replace",
        epsilon=3.0,
        random_state=5,
        **law,
    )
    assert replay(whole(made), (table, words), (table, odd)) >= 3


@pytest.mark.parametrize("search", [DisjointSearch, PrivateSearch])
def test_a_file_has_no_positions_to_split_by(search: Any, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("a,ill\n0.5,0\n", encoding="utf-8")
    schema = Schema((Number("a", -1, 1),), ClassTarget("ill", ("0", "1")), n_records=1)
    table = SchemaEncoder(schema).unread_file(tmp_path / "people.csv")
    with pytest.raises(ValueError, match="position"):
        search(LogisticRegression(), SPACE, relation="replace").fit(table)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_choice_is_monotone_only_where_records_come_and_go(
    monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    """A record that is replaced may be one mistake less here and one more there: half the rate."""
    claims: list[bool] = []

    def noted(*given: Any, monotone: bool, **more: Any) -> Any:
        claims.append(monotone)
        return select(*given, monotone=monotone, **more)

    monkeypatch.setattr(evaluation, "select", noted)
    DisjointSearch(model("classes", relation), SPACE, relation=relation).fit(*records())
    assert claims == [relation == "add_remove"]
    # a choice of another price than the planned one is withheld
    monkeypatch.setattr(evaluation, "select", lambda u, e, **more: select(u, 2 * e, **more))
    with pytest.raises(RuntimeError, match="withheld"):
        DisjointSearch(model("classes", relation), SPACE, relation=relation).fit(*records())
