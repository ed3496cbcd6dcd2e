"""Run ``tacit predict``: predict the target of a raw table with a saved model."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new
from tacit.cli.running import Refused

if TYPE_CHECKING:
    from tacit.schema import SchemaEncoder
    from tacit.schema.encoding import Tally

_FORMATS = (".csv", ".parquet", ".arrow", ".feather")
PREDICTION = "prediction"
_KEEP = (
    "which --keep names; any column of the table may be kept, declared in the schema or not: "
    "check its name in the table's header"
)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that tacit fit saved.")],
    data: opt.Data,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Where to write: .csv, .parquet, .arrow, .feather. By default CSV."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="Copy this column to the result; may be repeated."),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    delimiter: opt.Delimiter = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Predict the target of a table with a saved model.

    Predicts the target of every record, in order. The table needs the columns of the model's
    schema, not the target. A line of a .csv file with more or fewer fields than its header is
    not a record and gets no prediction: use --keep to copy a column that identifies the records.
    Predictions are as sensitive as their records.

    \b
    Examples:
      tacit predict model.tacit new_people.csv --keep id --out predictions.csv
      tacit predict model.tacit new_people.parquet --proba | head
    """  # noqa: D301
    from tacit.cli.models import saved_predictor
    from tacit.cli.schema import unreadable
    from tacit.saving.container import write_whole
    from tacit.schema.encoding import Tally

    check_new(out, force, model, data)
    if out is not None and out.suffix.lower() not in _FORMATS:
        raise Refused(f"--out {out.name!r}: predictions go to {', '.join(_FORMATS)} files.")
    encoder, estimator = saved_predictor(model)
    if proba and not hasattr(estimator, "predict_proba"):
        kind = type(getattr(estimator, "estimator_", estimator)).__name__
        raise Refused(f"{model.name} is a {kind}, which has no probabilities; leave --proba out.")
    schema = encoder.schema
    tally = Tally(schema.encoded)
    header, rows = _predictions(encoder, estimator, data, keep or [], proba, delimiter, tally)
    if as_json:
        target = None if schema.target is None else schema.target.name
        records = [dict(zip(header, row, strict=True)) for row in rows]
        output.document({"target": target, "records": records})
    elif out is None:
        output.written_csv(header, rows)
    else:
        write_whole(out, _encoded(out.suffix.lower(), header, list(rows)))
        output.say(f"wrote {out}")
    # The guarantee does not protect the table to predict, so its counts may be printed.
    for sentence in unreadable(tally.checks):
        output.note(sentence)


def _predictions(
    encoder: SchemaEncoder,
    estimator: Any,
    data: Path,
    keep: Sequence[str],
    proba: bool,
    delimiter: str | None,
    tally: Tally,
) -> tuple[list[str], Iterator[list[Any]]]:
    """Return the names of the result's columns, and an iterator of its rows."""
    from tacit.io.reading import open_table, refuse_absent_in

    names = [column.name for column in encoder.schema.encoded]
    file = open_table(data, delimiter=delimiter)
    present = file.names()
    refuse_absent_in(data, present, names)
    refuse_absent_in(data, present, keep, _KEEP)
    batches = file.batches(list(dict.fromkeys([*keep, *names])))
    header = [*keep, PREDICTION]
    if proba:
        header += [f"p({label})" for label in estimator.classes_.tolist()]
    if len(set(header)) < len(header):
        raise Refused("--keep: two columns of the result would have the same name; leave one out.")
    return header, _rows(encoder, estimator, batches, keep, proba, tally)


def _rows(
    encoder: SchemaEncoder,
    estimator: Any,
    batches: Iterator[Any],
    keep: Sequence[str],
    proba: bool,
    tally: Tally,
) -> Iterator[list[Any]]:
    import numpy as np

    from tacit.cli.models import reads_tables
    from tacit.io.memory_tables import columns_of_batch
    from tacit.io.values import ReadOnce
    from tacit.schema.encoding import write_rows

    columns, n_features = encoder.schema.encoded, len(encoder.schema.feature_names)
    for batch in batches:
        # Encode here rather than in model.predict, so that counting does not parse values twice.
        chunk = {name: ReadOnce(values) for name, values in columns_of_batch(batch).items()}
        tally.add(chunk)
        encoded: Any = batch
        if not reads_tables(estimator):
            encoded = np.zeros((batch.num_rows, n_features), dtype=encoder.dtype)
            write_rows(chunk, columns, encoded)
        passed_through = [map(_text, batch.column(name).to_pylist()) for name in keep]
        answers: list[Any] = [estimator.predict(encoded).tolist()]
        if proba:
            answers += estimator.predict_proba(encoded).T.tolist()
        yield from (list(row) for row in zip(*passed_through, *answers, strict=True))


def _text(value: Any) -> Any:
    """Return a value of the table as text; values of a CSV are bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _encoded(suffix: str, header: Sequence[str], rows: list[list[Any]]) -> bytes:
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
        return text.getvalue().encode("utf-8")
    import pyarrow as pa

    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    table = pa.table(dict(zip(header, map(list, columns), strict=True)))
    sink = io.BytesIO()
    if suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, sink)
    else:
        from pyarrow import feather

        feather.write_feather(table, sink, compression="uncompressed")
    return sink.getvalue()
