"""Run ``tacit fit``: fit a private model to a table, locally or on a cluster."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import (
    check_new,
    check_report,
    room_for,
    table_files,
    write_model_report,
)
from tacit.cli.options import check_relation, warn_if_weak
from tacit.cli.running import Refused, before_records

if TYPE_CHECKING:
    from tacit.schema import Schema


_SECONDS = 30


def check_tls(scheduler: str | None, *files: Path | None) -> None:
    """Refuse certificates without a scheduler, an incomplete set, or a scheduler without TLS."""
    given = [file for file in files if file is not None]
    if not given:
        return
    if scheduler is None or len(given) < len(files):
        raise Refused("--tls-ca, --tls-cert and --tls-key belong together, and need --scheduler.")
    if not scheduler.startswith("tls://"):
        raise Refused(
            "certificates are for a scheduler behind TLS; its address begins with tls://."
        )


@contextlib.contextmanager
def connected(scheduler: str, *tls: Path | None) -> Iterator[Any]:
    """Yield a client of the cluster at an address, with or without TLS files."""
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError:
        raise Refused(
            '--scheduler needs Dask, which is not installed; pip install "tacit[dask]".'
        ) from None
    security = None
    if all(tls):
        ca, cert, key = map(str, tls)
        security = Security(
            tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True
        )
    try:
        client = Client(scheduler, security=security, timeout=_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise Refused(
            f"the scheduler at {scheduler!r} does not answer ({type(error).__name__}); check the "
            "address and the certificates."
        ) from None
    with client:
        yield client


def fit_on_cluster(model: Any, data: str, client: Any, dtype: str, delimiter: str | None) -> None:
    """Fit an encoder and an estimator to files that the workers of a cluster read."""
    from tacit.cluster import DaskRecords

    if model.epsilon is not None:
        raise Refused("--scheduler needs a complete schema, and no --evaluate.")
    if delimiter is not None:
        raise Refused("--scheduler reads CSV files with commas; leave --delimiter out.")
    schema = model.schema
    model.fit_records(
        lambda bounds: DaskRecords.from_files(data, schema, bounds, client, dtype=dtype)
    )


_NOT_CONFIRMED = (
    "NOT CONFIRMED: the schema's lines on {names} were guessed from the data. The guarantee does "
    "not cover them, and says so."
)
_NO_PRIVACY = "NO PRIVACY: epsilon is infinite, so the model is fitted without noise."


def fit(
    data: opt.DataFiles,
    schema: opt.SchemaFile,
    epsilon: opt.Epsilon,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where to save the model.")],
    delta: opt.DeltaOfRelease = None,
    target: opt.TargetColumn = None,
    unit: opt.UnitColumn = None,
    model: opt.Model = None,
    report: opt.Report = None,
    mechanism: opt.MechanismName = "auto",
    relation: opt.RelationName = "add_remove",
    quantile: opt.Quantile = None,
    class_weight: opt.ClassWeight = None,
    inference: opt.Inference = "0",
    evaluate: Annotated[
        float,
        typer.Option(
            "--evaluate",
            help="The share of records to hold out, such as 0.1; the model is evaluated on "
            "them, with noise. This costs no further budget.",
        ),
    ] = 0.0,
    *,
    charge: opt.Charge,
    delimiter: opt.Delimiter = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Encode the table in half the memory.")
    ] = False,
    allow_unconfirmed: Annotated[
        bool,
        typer.Option(
            "--allow-unconfirmed",
            help="Fit although lines of the schema were guessed from the data and nobody has "
            "confirmed them. The guarantee then says so.",
        ),
    ] = False,
    scheduler: opt.Scheduler = None,
    tls_ca: opt.TlsCa = None,
    tls_cert: opt.TlsCert = None,
    tls_key: opt.TlsKey = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Train a private model on a table.

    Saves the model and prints its guarantee. Only released values are printed: no score on the
    records, and not their number. Each fit on the same records spends its budget anew, and costs
    add up; --ledger records them, and refuses a fit that would exceed its budget.

    \b
    Examples:
      tacit fit people.csv --schema schema.toml --epsilon 1 --out model.tacit
      tacit fit people.parquet --schema schema.toml --target income --epsilon 0.5 \\
          --delta 1e-6 --model svc --out model.tacit --report report.html
      tacit fit people.csv --schema schema.toml --epsilon 1 --evaluate 0.1 --out model.tacit
      tacit fit people.csv --schema schema.toml --epsilon 0.5 --out model.tacit \\
          --ledger survey.ledger --purpose "income by age"
      tacit fit 'part-*.parquet' --schema schema.toml --epsilon 1 --out model.tacit \\
          --scheduler tls://head:8786 --tls-ca ca.pem --tls-cert me.pem --tls-key me.key
    """  # noqa: D301
    from tacit.cli.evaluate import show_metrics
    from tacit.cli.ledger import Protected, delta_of_release, record_file
    from tacit.estimators.parameters import NobodyCountedWarning, postponed
    from tacit.saving import inspect, save

    with before_records():
        inputs = (*table_files(data), schema, *charge.files)
        check_new(out, force, *inputs, report)
        check_report(report, force, *inputs, out)
        check_tls(scheduler, tls_ca, tls_cert, tls_key)
        declared = read_schema(schema, target, unit)
        share = opt.inference_of(inference)
        # An intercept and all levels of a category are collinear: see check_references.
        declared = declared.with_references() if share else declared
        _refuse_unconfirmed(declared, schema, allow_unconfirmed)
        check_relation(relation, declared, schema)
        accountant = charge.accountant(
            epsilon,
            release="model, and its evaluation" if evaluate else "model",
            table=Path(data).name,
            protected=Protected(declared.unit, column_names(schema)),
        )
        delta = delta_of_release(delta, epsilon, accountant)
        fitted = _model(
            declared,
            model,
            epsilon,
            delta,
            mechanism=mechanism,
            relation=relation,
            quantile=quantile,
            class_weight=class_weight,
            inference=share,
            evaluate=evaluate,
            float32=float32,
            allow_unconfirmed=allow_unconfirmed,
            accountant=accountant,
        )
    warn_if_weak(epsilon, delta, declared.n_records)
    if is_text_table(data):
        output.note(_LINES)
    with room_for(out, report), postponed(NobodyCountedWarning) as nobody:
        if scheduler is not None:
            with connected(scheduler, tls_ca, tls_cert, tls_key) as client:
                fit_on_cluster(fitted, data, client, "float32" if float32 else "float64", delimiter)
        else:
            with output.progress("reading the table", "training") as step:
                fitted.fit_file(data, delimiter=delimiter, progress=step)
    save(fitted, out)
    if report is not None:
        write_model_report(report, fitted)
    certificate = inspect(out)
    record_file(accountant, out, certificate)
    if as_json:
        files = {"out": str(out), "report": None if report is None else str(report)}
        output.document({**files, **certificate.to_dict()})
    else:
        _show(certificate, out, report)
        if certificate.evaluation is not None:
            show_metrics(certificate.evaluation)
    if nobody:  # a small table is not an empty one, so that what is paid for is saved first
        where = "" if charge.ledger is None else " to the ledger"
        raise Refused(
            f"{nobody[0]} Epsilon {epsilon:g} and delta {delta:g} were charged{where}, and what "
            f"they paid for is saved in {out.name}. Compare the target's classes in the schema "
            "with the table, and the delimiter, before you use it; if the table has so few "
            "records, declare n_records in the schema."
        )


# Said of every CSV: whether it has such lines is private, so a fit may not tell.
_LINES = (
    "Lines of a CSV that are no complete records are left out, and a fit may not say how many; "
    "tacit schema check counts them."
)


def is_text_table(data: str) -> bool:
    """Return whether the names of a table's files are those of CSV files.

    Examples
    --------
    >>> from tacit.cli.fit import is_text_table
    >>> is_text_table("part-*.csv.gz"), is_text_table("visits.parquet")
    (True, False)
    """
    return data.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def read_schema(path: Path, target: str | None, unit: str | None = None) -> Schema:
    """Read a schema, and set its target and its unit."""
    from tacit.schema import Schema

    declared = Schema.from_file(path)
    declared = declared if target is None else declared.with_target(target)
    return declared if unit is None else declared.with_unit(unit)


def column_names(path: Path) -> tuple[str, ...]:
    """Return the names of the columns that a schema file declares."""
    from tacit.schema import Schema

    return tuple(column.name for column in Schema.from_file(path).columns)


def _refuse_unconfirmed(schema: Schema, path: Path, allowed: bool) -> None:
    if not schema.unconfirmed:
        return
    names = ", ".join(map(repr, schema.unconfirmed))
    if not allowed:
        raise Refused(
            f"{path.name}: the lines on {names} were guessed from the "
            'data and are not confirmed; guesses leak. Check each line and delete its "confirmed = '
            'false" (tacit schema confirm), or pass --allow-unconfirmed; the guarantee says so.'
        )
    output.note(_NOT_CONFIRMED.format(names=names))


def _model(schema: Schema, name: str | None, epsilon: float, delta: float, **choices: Any) -> Any:
    """Make the model, and plan it once so that errors are raised before reading."""
    import numpy as np

    model: Any
    from tacit.cli.models import (
        ADDITIVE,
        class_weight_of,
        kind_for,
        make_additive,
        make_estimator,
    )
    from tacit.pipeline import PrivatePipeline
    from tacit.schema import SchemaEncoder
    from tacit.table_model import TableModel

    if name == ADDITIVE:
        model = make_additive(schema, epsilon, delta, **choices)
        model.plan()
        return model
    dtype = np.float32 if choices.pop("float32") else np.float64
    allowed, accountant = choices.pop("allow_unconfirmed"), choices.pop("accountant")
    classes = getattr(schema.target, "classes", ())
    choices["class_weight"] = class_weight_of(choices["class_weight"], classes)
    evaluate = choices.pop("evaluate")
    estimator = make_estimator(kind_for(schema, name), epsilon, delta, **choices)
    if evaluate or schema.is_open:
        encoder = SchemaEncoder(schema, dtype, allow_unconfirmed=allowed)
        model = PrivatePipeline(
            [("schema", encoder), ("model", estimator.set_params(epsilon=None))],
            epsilon,
            delta,
            relation=choices["relation"],
            evaluate=evaluate,
            accountant=accountant,
        )
    else:
        estimator.set_params(accountant=accountant)
        model = TableModel(schema, estimator, dtype=dtype, allow_unconfirmed=allowed)
    if math.isinf(epsilon):
        output.note(_NO_PRIVACY)
    else:
        model.plan()
    return model


def _show(certificate: Any, out: Path, report: Path | None) -> None:
    plan = certificate.estimator.plan_
    output.guarantee(certificate.privacy, certificate.statement)
    shown = {"model": f"{out} ({type(certificate.estimator).__name__})"}
    shown["sha256"] = certificate.sha256
    if plan is not None:
        shown["mechanism"] = f"{plan.name}: {plan.reason}"
    if report is not None:
        shown["report"] = str(report)
    output.facts(shown)
