"""A record of no declared class does not count, whatever its label is and wherever records lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression as Line
from sklearn.naive_bayes import GaussianNB

import tacit
from tacit.cluster import DaskRecords
from tacit.erm import NoisyGradient, Objective, minimize
from tacit.erm.losses import LogisticLoss, SoftmaxLoss
from tacit.estimators.parameters import codes_of
from tacit.images import ScatteringClassifier
from tacit.linear_model import LogisticRegression
from tacit.metrics import evaluate, private_score
from tacit.noise import seeded_source
from tacit.pate import PATEClassifier
from tacit.pate.sites import Round, TeacherSite, digest_of
from tacit.pipeline import PrivatePipeline
from tacit.preprocessing import PrivateStandardScaler
from tacit.privacy import Accountant, Budget
from tacit.records import Bounds, ChunkedRecords, MemoryRecords
from tacit.records.files import ParquetRecords
from tacit.records.grouped import PeopleInMemory, PeopleInSource
from tacit.records.lazy_table import MappedRows
from tacit.records.memory import open_records
from tacit.records.privacy_unit import people_of
from tacit.records.reweighted import ClassWeights, ReweightedRecords
from tacit.records.rows_and_labels import as_labels
from tacit.registry import Predicts
from tacit.schema import ClassTarget, Number, Schema, SchemaEncoder, SchemaError
from tacit.table_model import TableModel
from tacit.testing import check_record_source
from tacit.tuning import DisjointSearch, PrivateSearch
from tests.cluster.helpers import AtOnce, Done
from tests.declared import PROBLEMS, made, with_slow

NAN = float("nan")
N, D = 60, 3
RNG = np.random.default_rng(3)
ROWS = RNG.uniform(-0.5, 0.5, (N, D)).round(3)
ODD_ROWS = np.full((5, D), 0.5)
AT = [0, 7, 7, 31, N]  # before the first, twice in one place, and after the last


def mixed(values: Any, odd: Any) -> Any:
    """Return values with odd ones among them."""
    return np.insert(np.asarray(values), AT, odd, axis=0)


def objects(values: Any, odd: list[Any]) -> list[Any]:
    found = list(values)
    for place, value in sorted(zip(AT, odd, strict=True), key=lambda pair: -pair[0]):
        found.insert(place, value)
    return found


# --- estimators ---------------------------------------------------------------------------------

CLASSIFIERS = {
    name: (spec, example)
    for name, (spec, example) in PROBLEMS.items()
    if spec.predicts is Predicts.CLASSES and not spec.word.startswith("local")
}


class Odd:
    """A label that wants to be every class, and says so when it is asked."""

    def __eq__(self, other: object) -> bool:
        raise KeyError("HIV positive")

    def __hash__(self) -> int:
        return 1


def odd_labels() -> dict[str, Callable[[Any], Any]]:
    """Return ways to put labels of no class among whole numbers 0, 1, ... that are classes."""
    return {
        "other numbers": lambda y: mixed(y, [7, 3, -1, 9, 100]),
        "fractions": lambda y: mixed(y.astype(float), [0.5, -0.1, 1.5, 3.0, 1e300]),
        "not finite": lambda y: mixed(y.astype(float), [NAN, np.inf, -np.inf, NAN, NAN]),
        "of any kind": lambda y: objects(y, [None, "1", Odd(), [0], 10**400]),
        "pandas": lambda y: pd.Series(objects(y, [None, 7, pd.NA, 9, -1]), dtype="Int64"),
        "polars": lambda y: pl.Series(objects(y.tolist(), [None, 7, None, 9, -1])),
        "arrow": lambda y: pa.array(objects(y.tolist(), [None, 7, None, 9, -1])),
    }


def released(model: Any) -> Any:
    return (
        model.weights_
        if hasattr(model, "weights_")
        else np.hstack([model.coef_.ravel(), model.intercept_.ravel()])
    )


@pytest.mark.parametrize("kind", odd_labels())
@pytest.mark.parametrize("name", with_slow(CLASSIFIERS))
def test_a_fit_is_that_of_the_others(name: str, kind: str) -> None:
    spec, example = CLASSIFIERS[name]
    codes = np.unique(np.asarray(example.labels), return_inverse=True)[1]
    classes = list(range(len(example.parameters["classes"])))
    model = made(spec, example, classes=classes, random_state=1)
    expected = released(model.fit(example.rows, codes))
    rows = mixed(example.rows, np.full((5, 3), 9.0))
    assert np.array_equal(released(model.fit(rows, odd_labels()[kind](codes))), expected)


@pytest.mark.parametrize("kind", odd_labels())
def test_teachers(kind: str) -> None:
    codes = (ROWS[:, 0] > 0).astype(int)
    labels = odd_labels()[kind](codes)
    teachers = PATEClassifier(GaussianNB(), 5, Line(), 4, 8.0, 1e-5, classes=[0, 1], random_state=1)
    pool = np.linspace(-1, 1, 30).reshape(10, 3)
    expected = teachers.fit(ROWS, codes, pool).answers_
    found = teachers.fit(mixed(ROWS, ODD_ROWS), labels, pool).answers_
    assert np.array_equal(found, expected)


def test_images() -> None:
    codes = (ROWS[:, 0] > 0).astype(int)
    labels = odd_labels()["of any kind"](codes)
    images = ScatteringClassifier(1.0, 1e-6, image_shape=(8, 8), classes=[0, 1], random_state=1)
    pictures = RNG.uniform(0, 1, (N, 64))
    expected = released(images.fit(pictures, codes))
    assert np.array_equal(released(images.fit(mixed(pictures, np.ones((5, 64))), labels)), expected)


@pytest.mark.parametrize("kind", odd_labels())
def test_networks(kind: str) -> None:
    deep = pytest.importorskip("tacit.deep")
    codes = (ROWS[:, 0] > 0).astype(int)
    network = deep.NeuralClassifier(
        hidden=(4,), n_steps=3, n_records=N, classes=[0, 1], random_state=1
    )
    expected = released(network.fit(ROWS, codes))
    found = released(network.fit(mixed(ROWS, ODD_ROWS), odd_labels()[kind](codes)))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", odd_labels())
def test_an_evaluation_is_that_of_the_others(kind: str) -> None:
    codes = (ROWS[:, 0] > 0).astype(int)
    model = Line().fit(ROWS, codes)
    rows, labels = mixed(ROWS, ODD_ROWS), odd_labels()[kind](codes)
    asked: dict[str, Any] = {"epsilon": 1e3, "delta": 1e-6, "random_state": 1}
    found = evaluate(model, rows, labels, **asked)
    assert np.array_equal(found.sums, evaluate(model, ROWS, codes, **asked).sums)
    scores = [
        private_score(model, *data, 1.0, source=seeded_source(1)).value
        for data in ((rows, as_labels(labels)), (ROWS, codes))
    ]
    assert scores[0] == scores[1]


def test_all_labels_of_no_class_are_no_records() -> None:
    model = LogisticRegression(row_norm=1.0, classes=[0, 1], random_state=1)
    nobody = released(model.fit(ROWS, np.where(ROWS[:, 0] > 0, 2, 3)))
    one = ROWS[:1]
    assert np.array_equal(nobody, released(model.fit(one, [None])))


def test_words_are_compared_one_by_one() -> None:
    words = np.array(["no", "yes", "yes ", "", "n", "maybe", "yesterday"])
    assert codes_of(words, np.array(["no", "yes"]))[1].tolist() == [True, True] + 5 * [False]


# --- record sources -----------------------------------------------------------------------------


class Same:
    """The row itself, as a map of rows."""

    n_columns = D

    def __call__(self, rows: Any, out: Any) -> None:
        out[:] = rows


class Client(AtOnce):
    def compute(self, piece: Any) -> Done:
        return Done(piece.compute(scheduler="sync"))


def blocks(rows: Any, labels: Any, step: int) -> Callable[[], Iterator[Any]]:
    starts = range(0, len(rows), step)
    return lambda: ((rows[at : at + step], labels[at : at + step]) for at in starts)


def on_disk(rows: Any, labels: Any, bounds: Bounds, folder: Path) -> Any:
    held = []
    for name, values in (("rows", rows), ("labels", np.asarray(labels))):
        array = np.memmap(folder / name, values.dtype, "w+", shape=values.shape)
        array[:] = values
        held.append(array)
    return MemoryRecords(held[0], held[1], bounds)


def of_a_frame(rows: Any, labels: Any, bounds: Bounds, folder: Path) -> Any:
    import dask.dataframe as dd

    frame = pd.DataFrame(rows, columns=list("abc")).assign(y=labels)
    with dask.config.set(scheduler="sync"):
        return DaskRecords.from_frame(dd.from_pandas(frame, npartitions=3), "y", bounds, Client())


def of_a_file(ending: str) -> Any:
    def make(rows: Any, labels: Any, bounds: Bounds, folder: Path) -> Any:
        codes = np.asarray(labels, dtype=float)
        if bounds.n_classes == 2:
            codes = np.where(codes == -1, 0, np.where(codes == 1, 1, 7.0))
        words = pd.Series(codes).map({0.0: "a", 1.0: "b", 2.0: "c"}).fillna("?")
        frame = pd.DataFrame(rows, columns=list("xyz")).assign(label=words.to_numpy())
        path = folder / f"records.{ending}"
        if ending == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
        names = ("a", "b", "c")[: bounds.n_classes]
        columns = tuple(Number(name, -0.5, 0.5) for name in "xyz")
        return ParquetRecords(path, Schema(columns, ClassTarget("label", names)), bounds)

    return make


SOURCES: dict[str, Callable[[Any, Any, Bounds, Path], Any]] = {
    "memory": lambda x, y, b, _: MemoryRecords(x, y, b),
    "single precision": lambda x, y, b, _: MemoryRecords(x, np.asarray(y, np.float32), b),
    "sparse": lambda x, y, b, _: MemoryRecords(scipy.sparse.csr_array(x), y, b),
    "to be made": lambda x, y, b, _: MemoryRecords(MappedRows(x, Same()), y, b),
    "on disk": on_disk,
    "opened": lambda x, y, b, _: open_records(x, y, b),
    "opened, of any kind": lambda x, y, b, _: open_records(x, [*map(_or_a_word, y)], b),
    "people": lambda x, y, b, _: PeopleInMemory(x, y, b, people_of(range(len(x)))),
    "one block": lambda x, y, b, _: ChunkedRecords(blocks(x, y, 100), D, b),
    "blocks": lambda x, y, b, _: ChunkedRecords(blocks(x, y, 7), D, b),
    "blocks of any kind": lambda x, y, b, _: ChunkedRecords(
        blocks(x, [*map(_or_a_word, y)], 7), D, b
    ),
    "parts": lambda x, y, b, _: DaskRecords.from_delayed([*blocks(x, y, 20)()], D, b, AtOnce()),
    "frame": of_a_frame,
    "csv": of_a_file("csv"),
    "parquet": of_a_file("parquet"),
}
LABELS = {2: np.where(ROWS[:, 0] > 0, 1.0, -1.0), 3: np.digitize(ROWS[:, 0], [-0.2, 0.2]) * 1.0}
ODD = {2: [2.0, -2.0, 0.5, NAN, np.inf], 3: [3.0, -1.0, 0.5, NAN, -np.inf]}


def _or_a_word(label: float) -> Any:
    return "HIV positive" if np.isnan(label) else label


def sums(records: Any) -> Any:
    total: Any = records.sum(
        lambda block: (block.points().sum(axis=0), block.labels.sum(), np.array(block.n_rows))
    )
    return np.hstack(total)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", SOURCES)
def test_sums_are_those_of_the_others(name: str, k: int, tmp_path: Path) -> None:
    bounds = Bounds(row_norm=1.0, intercept=0.25, n_classes=k)
    expected = MemoryRecords(ROWS, LABELS[k], bounds)
    records = SOURCES[name](mixed(ROWS, ODD_ROWS), mixed(LABELS[k], ODD[k]), bounds, tmp_path)
    assert records.count() == N
    assert sums(records) == pytest.approx(sums(expected), abs=1e-6)
    assert sums(records.every(7)) == pytest.approx(sums(expected.every(7)), abs=1e-6)
    all_of_them = records.poisson_sample(1.0, seeded_source(1).words).records
    assert all_of_them.count() == N
    weights = ReweightedRecords(records, ClassWeights((1.0, 0.5, 0.25)[:k]))
    (total,) = weights.sum(lambda block: (block.weighed(np.ones(block.n_rows)).sum(),))
    each = [np.sum(LABELS[k] == label) for label in np.unique(LABELS[k])]
    assert total == pytest.approx(np.dot(each, (1.0, 0.5, 0.25)[:k]))
    loss: Any = LogisticLoss() if k == 2 else SoftmaxLoss(3)
    objective, budget = Objective(loss, bounds), Budget(1.0, 1e-6)
    if name == "people":
        return
    fits = [
        minimize(source, objective, budget, NoisyGradient(n_steps=3), source=seeded_source(1))
        for source in (records, expected)
    ]
    assert fits[0].weights == pytest.approx(fits[1].weights, abs=1e-3)


@pytest.mark.parametrize("name", ["memory", "blocks", "parts", "frame"])
def test_an_estimator_fits_a_source_as_it_fits_arrays(name: str, tmp_path: Path) -> None:
    model = LogisticRegression(row_norm=1.0, classes=["no", "yes"], random_state=1)
    words = np.where(LABELS[2] > 0, "yes", "no")
    expected = released(model.fit(ROWS, words))
    bounds = model.plan(D).problem.objective.bounds
    records = SOURCES[name](mixed(ROWS, ODD_ROWS), mixed(LABELS[2], ODD[2]), bounds, tmp_path)
    assert released(model.fit(records, None)) == pytest.approx(expected, abs=1e-3)


def test_a_frame_with_classes_one_and_two_has_no_second_positive() -> None:
    bounds = Bounds(row_norm=1.0, n_classes=2)
    records = of_a_frame(ROWS, np.where(ROWS[:, 0] > 0, 2, 1), bounds, Path())
    assert records.count() == np.sum(ROWS[:, 0] <= 0)


def test_nought_is_the_first_of_two_classes() -> None:
    bounds = Bounds(n_classes=2)
    ways = [LABELS[2], (LABELS[2] + 1) / 2, LABELS[2] > 0, (LABELS[2] > 0).astype(np.uint8)]
    loss = LogisticLoss()
    for labels in ways:
        records = MemoryRecords(ROWS, labels, bounds)
        assert records.count() == N
        (total,) = records.sum(lambda block: (loss.labels(block).sum(),))
        assert total == LABELS[2].sum()


@pytest.mark.parametrize("name", ["memory", "sparse", "blocks"])
def test_people_keep_their_records_where_others_are_left_out(name: str, tmp_path: Path) -> None:
    bounds = Bounds(row_norm=1.0, n_classes=2)
    rows, labels = mixed(ROWS, ODD_ROWS), mixed(LABELS[2], ODD[2])
    owners = mixed(np.arange(N) // 3, np.arange(5) % 2)  # odd ones are of people who have others
    records = SOURCES[name](rows, labels, bounds, tmp_path)
    one_each = PeopleInSource(records, owners).one_each()
    expected = PeopleInMemory(ROWS, LABELS[2], bounds, people_of(np.arange(N) // 3)).one_each()
    assert one_each.count() == N // 3
    assert sums(one_each) == pytest.approx(sums(expected))
    with pytest.raises(ValueError, match="different lengths"):
        PeopleInSource(records, np.arange(N)).one_each()


def test_one_label_does_not_decide_how_others_are_read() -> None:
    bounds = Bounds(row_norm=1.0, n_classes=2)
    for odd in (2.0, 1e9, NAN):
        labels = LABELS[2].copy()
        labels[7] = odd
        rest = np.delete(ROWS, 7, axis=0), np.delete(LABELS[2], 7)
        assert np.array_equal(
            sums(MemoryRecords(ROWS, labels, bounds)), sums(MemoryRecords(*rest, bounds))
        )


def test_a_schema_with_other_classes_than_the_bounds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("a,y\n0.1,one\n")
    three = Schema((Number("a", 0, 1),), ClassTarget("y", ("one", "two", "three")))
    for make in (ParquetRecords, lambda *given: DaskRecords.from_files(*given, AtOnce())):
        with pytest.raises(SchemaError, match="3 classes"):
            make(path, three, Bounds(n_classes=2))


def test_a_source_that_counts_them_is_no_sound_source() -> None:
    class Counting(MemoryRecords):
        def __init__(self, rows: Any, labels: Any, bounds: Bounds) -> None:
            open_to_all = Bounds(bounds.row_norm, bounds.label_range, intercept=bounds.intercept)
            super().__init__(rows, labels, open_to_all)
            self.bounds = bounds

    with pytest.raises(AssertionError, match="of no class"):
        check_record_source(Counting)


def test_counts_are_of_records_that_have_a_class() -> None:
    bounds = Bounds(row_norm=1.0, n_classes=2)
    odd = MemoryRecords(mixed(ROWS, ODD_ROWS), mixed(LABELS[2], ODD[2]), bounds)
    plain = MemoryRecords(ROWS, LABELS[2], bounds)
    assert odd.count() == plain.count()


# --- types that cannot match --------------------------------------------------------------------


class WasRead(Exception):
    pass


class Column:
    """Labels of which the type may be seen, and no value."""

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.shape, self.ndim = np.dtype(dtype), (N,), 1

    def __len__(self) -> int:
        return N

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise WasRead

    __iter__ = __getitem__ = __array__


WORDS, NUMBERS = np.array(["no", "yes"] * (N // 2)), np.arange(N) % 2
CANNOT: dict[str, tuple[Any, list[Any]]] = {
    "numbers against words": (Column(int), ["no", "yes"]),
    "floats against words": (Column(float), ["no", "yes"]),
    "booleans against words": (Column(bool), ["no", "yes"]),
    "words against numbers": (Column("U18"), [0, 1]),
    "bytes against words": (Column("S3"), ["no", "yes"]),
    "dates against numbers": (Column("M8[D]"), [0, 1]),
    "pandas": (pd.Series(NUMBERS), ["no", "yes"]),
    "nullable": (pd.Series(NUMBERS, dtype="Int64"), ["no", "yes"]),
    "text of pandas": (pd.Series(WORDS, dtype="string"), [0, 1]),
    "categories": (pd.Series(WORDS, dtype="category"), [0, 1]),
    "polars": (pl.Series(NUMBERS), ["no", "yes"]),
    "Enum": (pl.Series(WORDS, dtype=pl.Enum(["no", "yes"])), [0, 1]),
    "arrow": (pa.array(NUMBERS), ["no", "yes"]),
    "dictionary": (pa.array(WORDS).dictionary_encode(), [0, 1]),
}


def refused(work: Callable[[Accountant], Any]) -> str:
    """Return the error of a fit that charges nothing."""
    accountant = Accountant(Budget(100.0, 1e-4))
    with pytest.raises(ValueError, match="no record would count") as refusal:
        work(accountant)
    assert not accountant.events
    said = str(refusal.value)
    assert "U18" not in said, "the length of the longest label"
    return said


@pytest.mark.parametrize("case", CANNOT)
def test_types_that_cannot_match_are_refused_before_the_charge(case: str) -> None:
    labels, classes = CANNOT[case]
    known = {"classes": classes, "row_norm": 1.0}
    for name in ("logistic-binary", "svc-binary", "kernel_svc-binary"):
        spec, _ = CLASSIFIERS[name]
        said = refused(lambda a, s=spec: made(s, **known, accountant=a).fit(ROWS, labels))
        assert said.startswith("y is of ")
        assert "classes=[...]" in said
    teachers = PATEClassifier(GaussianNB(), 5, Line(), 4, 8.0, 1e-5, classes=classes)
    refused(lambda a: teachers.set_params(accountant=a).fit(ROWS, labels, ROWS[:9]))
    model = LogisticRegression(**known)
    tries = {"regularization": [1.0, 10.0]}
    for search in (PrivateSearch, DisjointSearch):
        refused(lambda a, s=search: s(model, tries, accountant=a).fit(ROWS, labels))
    steps = [("clip", PrivateStandardScaler(bounds=(-1, 1))), ("model", model)]
    refused(lambda a: PrivatePipeline(steps, accountant=a).fit(ROWS, labels))
    fitted = Line().fit(ROWS, np.array(classes)[NUMBERS])
    refused(lambda a: evaluate(fitted, ROWS, labels, epsilon=1.0, delta=1e-6, accountant=a))


def test_teachers_at_sites_refuse_before_the_charge(tmp_path: Path) -> None:
    site = TeacherSite("a", GaussianNB(), 5, tmp_path, classes=["no", "yes"])
    agreed = Round("first", (site.entry(),), 2, digest_of(ROWS[:9]), 9, 3.0)

    def work(accountant: Accountant) -> None:
        site.accountant = accountant
        site.answer(agreed, ROWS, Column(int), ROWS[:9])

    refused(work)


def test_networks_refuse_before_the_charge() -> None:
    deep = pytest.importorskip("tacit.deep")
    network = deep.NeuralClassifier(n_records=N, classes=["no", "yes"])
    refused(lambda a: network.set_params(accountant=a).fit(ROWS, Column(int)))


SCHEMA = Schema((Number("a", -1, 1),), ClassTarget("ill", ("no", "yes")))


@pytest.mark.parametrize("case", [case for case in CANNOT if CANNOT[case][1] == ["no", "yes"]])
def test_tables_refuse_before_the_charge(case: str) -> None:
    labels, _ = CANNOT[case]
    if case == "bytes against words":
        pytest.skip("bytes of a table are read as text")
    table = {"a": ROWS[:, 0], "ill": labels}

    def model(accountant: Accountant) -> Any:
        return TableModel(SCHEMA, LogisticRegression(accountant=accountant))

    for said in (
        refused(lambda a: model(a).fit(table)),
        refused(lambda a: model(a).fit({"a": ROWS[:, 0]}, labels)),
        refused(
            lambda a: tacit.PrivatePipeline(
                [("e", SchemaEncoder(SCHEMA)), ("m", LogisticRegression(accountant=a))],
                epsilon=None,
            ).fit(table)
        ),
        refused(
            lambda a: PrivatePipeline(
                [("e", SchemaEncoder(SCHEMA)), ("m", LogisticRegression())], accountant=a
            ).fit(table)
        ),
    ):
        assert "column 'ill' is of type" in said


def test_tables_of_numbers_whose_classes_can_be_numbers_are_read() -> None:
    table = {"a": ROWS[:, 0], "ill": NUMBERS}
    for target in (
        ClassTarget("ill", ("0", "1")),
        ClassTarget("ill", (0, 1)),
        ClassTarget.merged("ill", {"no": ["0"], "yes": ["1", "2"]}),
    ):
        TableModel(Schema((Number("a", -1, 1),), target), LogisticRegression()).fit(table)
    truth = ClassTarget("ill", (False, True))
    merged = ClassTarget.merged("ill", {"no": ["false"], "yes": ["true"]})  # as the error says
    for target in (truth, merged):
        schema = Schema((Number("a", -1, 1),), target)
        TableModel(schema, LogisticRegression()).fit({**table, "ill": NUMBERS > 0})


def test_files_refuse_before_the_charge(tmp_path: Path) -> None:
    path, again = tmp_path / "one.parquet", tmp_path / "two.arrow"
    table = pa.table({"a": ROWS[:, 0], "ill": NUMBERS})
    pa.parquet.write_table(table, path)
    with pa.OSFile(str(again), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    bounds = Bounds(n_classes=2)
    for files in (path, again, [path, again]):
        refused(lambda a, f=files: TableModel(SCHEMA, LogisticRegression(accountant=a)).fit_file(f))
        refused(lambda _, f=files: ParquetRecords(f, SCHEMA, bounds))
        refused(lambda _, f=files: DaskRecords.from_files(f, SCHEMA, bounds, AtOnce()))
    words = tmp_path / "three.parquet"
    pa.parquet.write_table(pa.table({"a": ROWS[:, 0], "ill": WORDS}), words)
    # where files do not agree, each record is read as its own file has it
    assert ParquetRecords([path, words], SCHEMA, Bounds(n_classes=2)).count() == N
