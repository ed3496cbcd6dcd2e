"""Steps of other authors: what mixes rows is refused, and what is vouched for is repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tacit
from tacit.linear_model import LogisticRegression
from tacit.pipeline import PrivatePipeline, Vouched
from tacit.privacy import Accountant, Budget
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder
from tacit.table_facts import TableFacts
from tacit.tuning import DisjointSearch, FixedTries, PrivateSearch

SCHEMA = Schema((Number("a", 0, 1), Number("b", 0, 1)), ClassTarget("ill", ("no", "yes")))
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(0, 1, (600, 2))
ILL = np.where(ROWS[:, 0] > 0.5, "yes", "no")
TABLE = {"a": ROWS[:, 0], "b": ROWS[:, 1]}


class HomeMade(TransformerMixin, BaseEstimator):
    """A step that says what is public of its rows, and does with them what it likes."""

    def __init__(self, function: Callable[[Any], Any] = np.asarray) -> None:
        self.function = function

    def fit(self, X: Any = None, y: Any = None) -> Any:
        return self

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        if facts is None:
            return TableFacts(("a", "b"), 2.0, classes=("no", "yes"))
        # A new one: what was assumed before it is not handed on.
        return TableFacts(facts.names, 2.0, classes=facts.classes)

    def transform(self, X: Any) -> Any:
        return self.function(np.asarray(X))


class Remembered(HomeMade):
    """Another, which a search may choose."""


class Remembering(HomeMade):
    """Centres by the first rows that it ever meets."""

    def transform(self, X: Any) -> Any:
        if not hasattr(self, "mean"):
            self.mean = X.mean(axis=0)
        return X - self.mean


class Running(HomeMade):
    """Centres by a running mean, as a batch norm does."""

    mean = 0.0

    def transform(self, X: Any) -> Any:
        self.mean = 0.9 * self.mean + 0.1 * X.mean(axis=0)
        return X - self.mean


class Dropping(HomeMade):
    """Drops values by masks that belong to places."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def transform(self, X: Any) -> Any:
        return X * (np.random.default_rng(self.seed).random(X.shape) < 0.5)


def _unless_few(X: Any) -> Any:
    return X - X.mean(axis=0) if len(X) > 100 else X


def _only_once(X: Any) -> Any:
    _, place, count = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    return X / count[place.ravel()][:, None]


MIXING = {
    "mean": HomeMade(lambda X: X - X.mean(axis=0)),
    "largest": HomeMade(lambda X: X / np.abs(X).max(axis=0)),
    "ranks": HomeMade(lambda X: np.argsort(np.argsort(X, axis=0), axis=0) / len(X)),
    "the row before": HomeMade(lambda X: X + np.roll(X, 1, axis=0)),
    "from 100 on": HomeMade(_unless_few),
    "a little": HomeMade(lambda X: X + 1e-2 * X.mean(axis=0)),
    "tiny": HomeMade(lambda X: 1e-9 * (X - X.mean(axis=0))),
    "rows that are there twice": HomeMade(_only_once),
    "what it remembers": Remembering(),
    "a running mean": Running(),
    "masks by place": Dropping(),
}


def fitted(kind: str, step: Any, accountant: Any = None, **encoding: Any) -> Any:
    """Fit a model of one step more, by one of the three that take home-made steps."""
    schema = SchemaEncoder(SCHEMA, **encoding)
    model = LogisticRegression(regularization=3.0)
    if kind == "pipeline":
        model.set_params(epsilon=1.0, accountant=accountant)
        steps = [("encode", schema), ("own", step), ("model", model)]
        return tacit.PrivatePipeline(steps, epsilon=None).fit(TABLE, ILL)
    if kind == "private pipeline":
        steps = [("encode", schema), ("own", step), ("model", model)]
        return PrivatePipeline(steps, 1.0, accountant=accountant).fit(TABLE, ILL)
    space = {"logisticregression__regularization": [3.0, 30.0]}
    model = make_pipeline(step, model.set_params(classes=["no", "yes"], row_norm=2.0))
    if kind == "search of a private pipeline":
        model = PrivatePipeline([("own", step), ("model", model[-1])])
        space = {"model__regularization": [3.0, 30.0]}
    told: dict[str, Any] = {"epsilon": 3.0, "accountant": accountant}
    if kind == "search on parts":
        return DisjointSearch(model, space, **told).fit(ROWS, ILL)
    return PrivateSearch(model, space, law=FixedTries(2), **told).fit(ROWS, ILL)


SEARCHES = ("search", "search of a private pipeline", "search on parts")
KINDS = ("pipeline", "private pipeline", *SEARCHES)


@pytest.mark.parametrize("case", MIXING)
def test_a_step_that_mixes_rows_is_refused(case: str) -> None:
    facts = SCHEMA.facts
    with pytest.raises(ValueError, match="gives a row other numbers"):
        facts.through(MIXING[case])
    with pytest.raises(ValueError, match="gives a row other numbers"):
        replace(facts, row_norm=np.inf, ranges=None).through(MIXING[case])


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_before_the_charge(kind: str) -> None:
    accountant = Accountant(Budget(3.0, 1e-6))
    with pytest.raises(ValueError, match="gives a row other numbers"):
        fitted(kind, MIXING["mean"], accountant)
    assert accountant.spent() == 0.0


def test_what_is_vouched_for_is_tried_too() -> None:
    step = Vouched(FunctionTransformer(lambda X: X - X.mean(axis=0)), row_norm=1.0)
    with pytest.raises(ValueError, match="FunctionTransformer gives a row other numbers"):
        fitted("private pipeline", step)


def _noisy(X: Any) -> Any:
    return X + np.random.default_rng().normal(size=X.shape)


HONEST = {
    "nothing": HomeMade(),
    "rounding": HomeMade(lambda X: X.astype(np.float32) @ np.full((2, 2), 0.3, np.float32)),
    "gaps": HomeMade(lambda X: np.where(X > 0.2, X, np.nan)),
    "randomness": HomeMade(_noisy),
    "zeros": HomeMade(lambda X: X * 0.0),
}


@pytest.mark.parametrize("case", HONEST)
def test_one_that_does_not_is_vouched_for(case: str) -> None:
    facts = SCHEMA.facts.through(HONEST[case])
    (sentence,) = facts.assumptions
    assert sentence.startswith("a step of the pipeline (HomeMade) makes each row from its own rec")
    assert facts.through(HONEST[case]).assumptions == (sentence,)  # once


@pytest.mark.parametrize("kind", KINDS)
def test_the_guarantee_says_so(kind: str) -> None:
    promise = fitted(kind, HONEST["nothing"]).privacy_
    assert any("(HomeMade)" in said and "vouches" in said for said in promise.assumptions)
    assert "(HomeMade)" in promise.statement()


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_repeats_what_was_vouched_for(kind: str) -> None:
    step = Vouched(FunctionTransformer(np.sin), row_norm=1.0)
    if kind == "search of a private pipeline":
        assert any("(FunctionTransformer)" in s for s in fitted(kind, step).privacy_.assumptions)
        return
    space = {"homemade__function": [np.sin, np.cos], "homemade": [HomeMade(), Remembered()]}
    model = make_pipeline(HomeMade(), LogisticRegression(classes=["no", "yes"], row_norm=2.0))
    found: Any = DisjointSearch if kind == "search on parts" else PrivateSearch
    said = found(model, space, epsilon=3.0).fit(ROWS, ILL).privacy_.assumptions
    assert {"(HomeMade)", "(Remembered)"} <= set(" ".join(said).split())


def test_a_step_of_ours_needs_nobody_to_vouch() -> None:
    assert fitted("pipeline", tacit.features.Interactions()).privacy_.assumptions == ()


def test_what_was_assumed_before_is_assumed_after() -> None:
    facts = replace(SCHEMA.facts, assumptions=("nobody has confirmed 'a'",))
    assert facts.through(HONEST["nothing"]).assumptions[0] == "nobody has confirmed 'a'"
