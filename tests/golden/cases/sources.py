"""Where records come from: types of rows, blocks, files, parts on a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from scipy import sparse

from tacit.cluster import DaskRecords
from tacit.erm import NoisyGradient, NoisySGD, SecondMoment
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.location import Mean
from tacit.records import ChunkedRecords
from tacit.records.files import ParquetRecords
from tacit.registry import Example
from tacit.schema import Category, ClassTarget, Number, NumberTarget, Schema
from tacit.table_model import TableModel
from tests.cluster.helpers import AtOnce
from tests.declared import PROBLEMS, made
from tests.golden.cases.fitting import DELTA, fitted
from tests.golden.cases.weights_and_people import people
from tests.golden.pinning import SEED, Case, Pins, pinned

MECHANISMS: dict[str, Any] = {
    "objective_perturbation": "objective_perturbation",
    "noisy_gradient": NoisyGradient(n_steps=4),
    "output_perturbation": "output_perturbation",
    "sufficient_statistics": "sufficient_statistics",
    "noisy_sgd": NoisySGD(sampling_rate=0.5, n_steps=4),
    "preconditioned": NoisyGradient(n_steps=4, preconditioner=SecondMoment(0.1, always=True)),
}


def _some_zeros(rows: Any) -> Any:
    return np.where(np.abs(rows) < 0.7, 0.0, rows)


ROWS: dict[str, Callable[[Example], Any]] = {
    "float32": lambda e: e.rows.astype(np.float32),
    "csr": lambda e: sparse.csr_array(_some_zeros(e.rows)),
    "csr32": lambda e: sparse.csr_array(_some_zeros(e.rows).astype(np.float32)),
    "csc": lambda e: sparse.csc_matrix(_some_zeros(e.rows)),
    "fortran": lambda e: np.asfortranarray(e.rows),
    "frame": lambda e: pd.DataFrame(e.rows, columns=["a", "b", "c"]),
    "polars": lambda e: pl.DataFrame(e.rows, schema=["a", "b", "c"]),
    "arrow": lambda e: pa.table({n: e.rows[:, i] for i, n in enumerate("abc")}),
    "far": lambda e: e.rows * np.where(np.arange(len(e.rows)) % 9, 1.0, 1e300)[:, None],
}


def _types() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for tag, rows in ROWS.items():
        for word in ("objective_perturbation", "noisy_gradient"):
            told = {"mechanism": MECHANISMS[word]}
            made[f"rows-{tag}-logistic-{word}"] = fitted("logistic-binary", rows=rows, **told)
        told = {"mechanism": "sufficient_statistics"}
        made[f"rows-{tag}-linear"] = fitted("linear-number", rows=rows, **told)
    for tag in ("float32", "csr", "csr32"):
        for word in ("noisy_sgd", "preconditioned", "output_perturbation"):
            known = {"n_records": 60} if word == "noisy_sgd" else {}
            made[f"rows-{tag}-logistic-{word}"] = fitted(
                "logistic-binary", rows=ROWS[tag], mechanism=MECHANISMS[word], **known
            )
        made[f"rows-{tag}-softmax"] = fitted("logistic-three", rows=ROWS[tag])
        made[f"rows-{tag}-poisson"] = fitted("poisson-count", rows=ROWS[tag])
    for tag in ("float32", "frame"):
        made[f"rows-{tag}-mean"] = fitted("mean-ball", rows=ROWS[tag])
        made[f"rows-{tag}-median"] = fitted("median-middle", rows=ROWS[tag])
        made[f"rows-{tag}-local"] = fitted("local_logistic-binary", rows=ROWS[tag], delta=0.0)
    return made


def _signs(example: Example) -> Any:
    return np.where(example.labels, 1.0, -1.0)


def _of_source(problem: str, word: str, records: Callable[..., Any], **given: Any) -> Case:
    """Return a fit to a record source that is made of an example's rows within its bounds."""

    def case() -> Pins:
        spec, example = PROBLEMS[problem]
        known = {"n_records": 60} if word == "noisy_sgd" else {}
        model = made(
            spec, example, random_state=SEED, delta=DELTA, mechanism=MECHANISMS[word], **known
        )
        bounds = model.plan(n_features=3).problem.objective.bounds
        labels = _signs(example) if problem == "logistic-binary" else example.labels
        return pinned(model.fit(records(example.rows, labels, bounds), None, **given))

    return case


def _in_blocks(rows: Any, labels: Any, bounds: Any) -> ChunkedRecords:
    cuts = (0, 17, 17, 40, len(rows))
    pairs = [(rows[a:b], labels[a:b]) for a, b in pairwise(cuts)]
    return ChunkedRecords(lambda: iter(pairs), rows.shape[1], bounds)


def _in_parts(rows: Any, labels: Any, bounds: Any) -> DaskRecords:
    cuts = (0, 17, 17, 40, len(rows))
    pairs = [(rows[a:b], labels[a:b]) for a, b in pairwise(cuts)]
    return DaskRecords.from_delayed(pairs, rows.shape[1], bounds, AtOnce())


def _blocks() -> dict[str, Case]:
    made: dict[str, Case] = {}
    for place, records in {"blocks": _in_blocks, "dask": _in_parts}.items():
        for word in MECHANISMS:
            if word != "sufficient_statistics":
                made[f"{place}-logistic-{word}"] = _of_source("logistic-binary", word, records)
        for word in ("sufficient_statistics", "noisy_gradient"):
            for problem in ("linear-number", "ridge-number"):
                made[f"{place}-{problem}-{word}"] = _of_source(problem, word, records)
        for problem in ("logistic-three", "poisson-count"):
            made[f"{place}-{problem}"] = _of_source(problem, "noisy_gradient", records)
    unit = people(PROBLEMS["logistic-binary"][1])["unit"]
    for word in ("objective_perturbation", "noisy_gradient"):
        name = f"blocks-people-logistic-{word}"
        made[name] = _of_source("logistic-binary", word, _in_blocks, unit=unit)
    return {**made, "blocks-mean": _mean_of_blocks}


def _mean_of_blocks() -> Pins:
    from tacit.records import Bounds

    _, example = PROBLEMS["mean-ball"]
    model = Mean(1.0, DELTA, row_norm=2.0, random_state=SEED)
    pairs = [(example.rows[:20], None), (example.rows[20:], None)]
    records = ChunkedRecords(lambda: iter(pairs), 3, Bounds(row_norm=2.0))
    return pinned(model.fit(records), model.plan(3))


SCHEMA = Schema(
    (Number("age", 0, 100), Category("town", ("a", "b"))), ClassTarget("ill", ("no", "yes"))
)
COSTS = Schema((Number("age", 0, 100),), NumberTarget("cost", 0, 500))
N = 90


def table() -> dict[str, Any]:
    """Return columns of people, as many as a moment takes."""
    rng = np.random.default_rng(8)
    age = rng.uniform(0, 100, N).round(3)
    return {
        "age": age,
        "town": rng.choice(["a", "b", "zzz"], N),
        "ill": np.where(age + rng.normal(0, 20, N) > 50, "yes", "no"),
        "cost": (4 * age + rng.uniform(0, 90, N)).round(3),
        "who": np.array([f"p{place // 2}" for place in range(N)]),
    }


@contextmanager
def files(kind: str) -> Iterator[str]:
    """Write the table in three files of a kind, and return a pattern that finds them."""
    with tempfile.TemporaryDirectory() as folder:
        whole = pa.table(table())
        for part in range(3):
            some, path = whole.slice(30 * part, 30), Path(folder) / f"part-{part}.{kind}"
            if kind == "parquet":
                pyarrow.parquet.write_table(some, path, row_group_size=7)
            elif kind == "feather":
                pyarrow.feather.write_feather(some, str(path))
            else:
                some.to_pandas().to_csv(path, index=False)
        yield f"{folder}/part-*.{kind}"


def _of_records(kind: str, word: str, dtype: Any, dask: bool = False) -> Case:
    def case() -> Pins:
        known = {"n_records": N} if word == "noisy_sgd" else {}
        model = LogisticRegression(
            1.0,
            DELTA,
            row_norm=SCHEMA.row_norm,
            classes=["no", "yes"],
            mechanism=MECHANISMS[word],
            random_state=SEED,
            **known,
        )
        bounds = model.plan(len(SCHEMA.feature_names)).problem.objective.bounds
        with files(kind) as found:
            if dask:
                records: Any = DaskRecords.from_files(found, SCHEMA, bounds, AtOnce())
            else:
                records = ParquetRecords(found, SCHEMA, bounds, dtype=dtype)
            return pinned(model.fit(records, None))

    return case


def _of_table(kind: str, schema: Schema, estimator: Callable[[], Any], dtype: Any) -> Case:
    def case() -> Pins:
        with files(kind) as found:
            model = TableModel(schema, estimator(), dtype=dtype).fit_file(found)
        return pinned(model.estimator_, predicted=model.predict(table())[:12])

    return case


def _files() -> dict[str, Case]:
    def logistic() -> Any:
        return LogisticRegression(1.0, DELTA, random_state=SEED)

    def descent() -> Any:
        return logistic().set_params(mechanism=MECHANISMS["noisy_gradient"])

    def line() -> Any:
        return LinearRegression(1.0, DELTA, random_state=SEED)

    made: dict[str, Case] = {}
    made["table-feather-auto"] = _of_table("feather", SCHEMA, logistic, np.float64)
    for kind in ("parquet", "csv"):
        for dtype in (np.float32, np.float64):
            tag = f"{kind}-{dtype.__name__}"
            for word in ("objective_perturbation", "noisy_gradient"):
                made[f"files-{tag}-{word}"] = _of_records(kind, word, dtype)
            made[f"table-{tag}-auto"] = _of_table(kind, SCHEMA, logistic, dtype)
            made[f"table-{tag}-noisy_gradient"] = _of_table(kind, SCHEMA, descent, dtype)
        made[f"table-{kind}-people"] = _of_table(
            kind, SCHEMA.with_unit("who"), logistic, np.float64
        )
        made[f"table-{kind}-people-noisy_gradient"] = _of_table(
            kind, SCHEMA.with_unit("who"), descent, np.float64
        )
        made[f"table-{kind}-numbers"] = _of_table(kind, COSTS, line, np.float64)
    made["files-parquet-noisy_sgd"] = _of_records("parquet", "noisy_sgd", np.float64)
    made["files-parquet-preconditioned"] = _of_records("parquet", "preconditioned", np.float64)
    made["dask-files-noisy_gradient"] = _of_records("parquet", "noisy_gradient", None, dask=True)
    made["dask-files-objective"] = _of_records("csv", "objective_perturbation", None, dask=True)
    return made


def _on_a_client() -> Pins:
    """On threads of a scheduler: one case, since its start takes longer than all others."""
    import dask.dataframe as dd
    from distributed import Client

    _, example = PROBLEMS["logistic-binary"]
    frame = pd.DataFrame(example.rows, columns=["a", "b", "c"]).assign(y=_signs(example))
    model = LogisticRegression(
        1.0,
        DELTA,
        row_norm=1.5,
        classes=[False, True],
        mechanism=MECHANISMS["noisy_gradient"],
        random_state=SEED,
    )
    bounds = model.plan(n_features=3).problem.objective.bounds
    with Client(processes=False, n_workers=1, dashboard_address=None) as client:
        pieces = dd.from_pandas(frame, npartitions=3)
        return pinned(model.fit(DaskRecords.from_frame(pieces, "y", bounds, client), None))


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    return {**_types(), **_blocks(), **_files(), "dask-client": _on_a_client}
