"""No value is read before it is paid for, and none is repeated in an error."""

from __future__ import annotations

import math
import traceback
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import is_classifier

from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.privacy import Accountant, Budget, BudgetExceeded, PureEpsilon, Relation
from tacit.registry import MODELS, ModelSpec
from tacit.schema import ClassTarget, Number, NumberTarget, Schema
from tacit.table_model import TableModel
from tests.declared import made, word_of

SECRET = "HIV positive"
N = 43
PUBLIC = {"classes": [0, 1], "label_range": (0.0, 1.0), "n_records": N, "row_norm": 1.0}


CHARGED = [spec for spec in MODELS if "accountant" in spec.model().get_params()]
# Those of a family share the code that reads: one of each, and, slow, the others.
QUICK = ("LogisticRegression", "LinearRegression", "Mean", "LocalLogisticRegression")
ONE_OF_EACH_FIRST = [
    pytest.param(spec, marks=() if spec.model.__name__ in QUICK else pytest.mark.slow)
    for spec in MODELS
]


def test_the_walk_meets_them_all() -> None:
    assert {spec for spec in MODELS if Relation.ADD_REMOVE in spec.relations} == set(CHARGED)
    assert len(CHARGED) >= 10
    assert len(MODELS) >= 15


def known(spec: ModelSpec, **parameters: Any) -> Any:
    """Return an estimator that knows every public fact."""
    return made(spec, **{**PUBLIC, **parameters})


class WasRead(Exception):
    pass


class Values:
    """A table or a column of which the shape and the type may be seen, and no value."""

    def __init__(self, *shape: int) -> None:
        self.shape, self.dtype, self.ndim = shape, np.dtype(float), len(shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise WasRead

    def __getitem__(self, at: Any) -> Any:
        raise WasRead

    def __iter__(self) -> Any:
        raise WasRead


class Bomb:
    """One value that nobody may look at."""

    def _explode(self, *args: Any) -> Any:
        raise WasRead

    __float__ = __int__ = __array__ = __eq__ = __lt__ = __gt__ = __str__ = __repr__ = _explode
    __hash__ = __bool__ = __index__ = _explode  # type: ignore[assignment]


def exhausted() -> Accountant:
    accountant = Accountant(Budget(1.0, 1e-5))
    accountant.charge(PureEpsilon(1.0))
    return accountant


@pytest.mark.parametrize("spec", CHARGED, ids=word_of)
def test_an_exhausted_accountant_refuses_before_a_value_is_read(spec: ModelSpec) -> None:
    tables: list[Any] = [Values(N, 3), [[Bomb(), Bomb(), Bomb()] for _ in range(N)]]
    objects = np.empty((N, 3), dtype=object)
    objects.fill(Bomb())
    tables.append(objects)
    for table in tables:
        for labels in (Values(N), [Bomb() for _ in range(N)]):
            accountant = exhausted()
            with pytest.raises(BudgetExceeded):
                known(spec, accountant=accountant).fit(table, labels)
            assert len(accountant.events) == 1


@pytest.mark.parametrize("spec", CHARGED, ids=word_of)
def test_what_was_read_has_been_paid_for(spec: ModelSpec) -> None:
    accountant = Accountant(Budget(2.0, 1e-5))
    with pytest.raises(WasRead):
        known(spec, accountant=accountant).fit(Values(N, 3), Values(N))
    assert len(accountant.events) == 1


@pytest.mark.parametrize("estimator", [LogisticRegression, LinearRegression])
def test_a_table_model_reads_nothing_before_the_charge(estimator: Any) -> None:
    target: Any = (
        ClassTarget("y", ("0", "1")) if is_classifier(estimator()) else NumberTarget("y", 0, 1)
    )
    schema = Schema((Number("a", 0, 1),), target)
    table = {"a": Values(N), "y": Values(N)}
    with pytest.raises(BudgetExceeded):
        TableModel(schema, estimator(accountant=exhausted())).fit(table)
    accountant = Accountant(Budget(2.0, 1e-5))
    with pytest.raises(WasRead):
        TableModel(schema, estimator(accountant=accountant)).fit(table)
    assert len(accountant.events) == 1


@pytest.mark.parametrize("spec", CHARGED, ids=word_of)
def test_a_seeded_fit_is_charged_as_what_it_is(spec: ModelSpec) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(0, 1, (N, 2)), rng.integers(0, 2, N)
    accountant = Accountant(Budget(5.0, 1e-5))
    with pytest.raises(BudgetExceeded, match=r"seeded.*random_state"):
        known(spec, accountant=accountant, random_state=0).fit(rows, labels)
    assert accountant.events == ()
    free = Accountant(Budget(math.inf, 1e-5))
    known(spec, accountant=free, random_state=0).fit(rows, labels)
    promise = free.guarantee()
    assert promise is not None
    assert "seeded" in promise.statement()
    assert promise.voided_by


# --- errors -------------------------------------------------------------------------------------


def hostile_tables() -> dict[str, Any]:
    rows = np.random.default_rng(1).uniform(0, 1, (N, 2))
    words: Any = rows.astype(object)
    words[3, 1] = SECRET
    huge: Any = rows.astype(object)
    huge[3, 1] = 10**400 + 7777777
    lost = rows.copy()
    lost[3, 1] = np.nan
    listed = rows.tolist()
    listed[3] = [0.5, SECRET]
    ragged = rows.tolist()
    ragged[3] = [0.5, 7777777.0, 0.5]
    frame = pd.DataFrame(rows, columns=["a", "b"])
    return {
        "words": words,
        "huge": huge,
        "lost": lost,
        "listed": listed,
        "ragged": ragged,
        "complex": [[7777777j, 2.0]] * N,
        "objects": [[{SECRET: 1}, 2.0]] * N,
        "signalling": np.full((N, 2), 0x7FF0000000000001, dtype=np.uint64).view(float),
        "twice": scipy.sparse.coo_array(([1.7e308] * 2, ([0, 0], [0, 0])), shape=(N, 2)),
        "long": np.array([["0.5", "x" * N]] * N),
        "texts": rows.astype(str),
        "masked": np.ma.masked_where(rows > 0.9, rows),
        "frame": frame.assign(b=words[:, 1]),
        "nullable": frame.assign(b=pd.Series([None] * N, dtype="Float64")),
        "polars": pl.DataFrame({"a": rows[:, 0], "b": [SECRET] * N}),
        "arrow": pa.table({"a": rows[:, 0], "b": [SECRET] * N}),
        "sparse": scipy.sparse.csr_array(lost),
        "flat": rows[:, 0],
    }


def hostile_labels() -> dict[str, Any]:
    words: Any = np.zeros(N, dtype=object)
    words[5] = SECRET
    lost = np.zeros(N)
    lost[5] = np.nan
    return {
        "words": words,
        "listed": words.tolist(),
        "texts": words.astype(str),
        "lost": lost,
        "masked": np.ma.masked_equal(np.zeros(N), 0.0),
        "series": pd.Series(words),
        "wide": np.full((N, 2), 7777777.0),
        "short": np.full(N - 1, 7777777.0),
    }


def said(error: BaseException) -> str:
    """Return what a person would be shown of an error and what led to it."""
    text = ""
    shown: BaseException | None = error
    while shown is not None:
        text += "".join(traceback.format_exception_only(shown))
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    return text


def check_silent(work: Any) -> None:
    try:
        work()
    except Exception as error:
        text = said(error)
        assert SECRET not in text
        assert "7777777" not in text
        assert str(N) not in text, "the number of records, or the length of a text"


@pytest.mark.parametrize("spec", ONE_OF_EACH_FIRST, ids=word_of)
@pytest.mark.parametrize("name", list(hostile_tables()))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_error_repeats_a_value_of_the_table(spec: ModelSpec, name: str) -> None:
    table = hostile_tables()[name]
    labels = np.arange(N) % 2
    check_silent(lambda: known(spec).fit(table, labels))
    if spec.score is not None:
        fitted = known(spec).fit(np.full((N, 2), 0.5), labels)
        check_silent(lambda: fitted.predict(table))


@pytest.mark.parametrize("spec", ONE_OF_EACH_FIRST, ids=word_of)
@pytest.mark.parametrize("name", list(hostile_labels()))
def test_no_error_repeats_a_label(spec: ModelSpec, name: str) -> None:
    labels = hostile_labels()[name]
    rows = np.full((N, 2), 0.5)
    check_silent(lambda: known(spec).fit(rows, labels))
    for inferred in ("classes", "label_range"):
        check_silent(lambda fact=inferred: known(spec, **{fact: "infer"}).fit(rows, labels))


@pytest.mark.parametrize("spec", MODELS, ids=word_of)
def test_masked_arrays_are_refused(spec: ModelSpec) -> None:
    rows, labels = np.full((N, 2), 0.5), np.arange(N) % 2
    with pytest.raises(TypeError, match="masked"):
        known(spec).fit(np.ma.masked_equal(rows, 7.0), labels)
    if spec.score is not None:
        with pytest.raises(TypeError, match="masked"):
            known(spec).fit(rows, np.ma.masked_equal(labels, 7))
