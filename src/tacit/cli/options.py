"""Define options that several commands share, and checks of a budget before it is spent."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import output
from tacit.cli.running import Refused
from tacit.mechanism_names import MECHANISM_NAMES

if TYPE_CHECKING:
    from tacit.cli.ledger import Protected
    from tacit.ledger import Ledger
    from tacit.schema import Schema


Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="The table: .csv, .tsv, .parquet, .arrow, .feather.")
]
DataFiles = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The table: .csv, .tsv, .parquet, .arrow, .feather; several files as a pattern in "
        "quotes, 'part-*.parquet', or an address that fsspec knows.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="The address of a Dask scheduler, tls://... or tcp://..., whose workers read the "
        "files. The workers see the records; noise is drawn by this process.",
    ),
]
TlsCa = Annotated[
    Path | None, typer.Option("--tls-ca", help="The certificate authority of the scheduler.")
]
TlsCert = Annotated[Path | None, typer.Option("--tls-cert", help="The certificate of this client.")]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", help="The key of that certificate.")]
SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The public schema of the table: a .toml or .json file.")
]
TargetColumn = Annotated[
    str | None,
    typer.Option("--target", help="The column to predict; by default the schema's target."),
]
UnitColumn = Annotated[
    str | None,
    typer.Option(
        "--unit",
        help="The column that identifies the person of a record; each person is then protected "
        "with all their records. By default the schema's unit.",
    ),
]
Epsilon = Annotated[
    float, typer.Option("--epsilon", "-e", help="The privacy budget; smaller is more private.")
]
Epsilons = Annotated[
    str,
    typer.Option(
        "--epsilon",
        "-e",
        help="The privacy budget; smaller is more private. Several with commas: 0.5,1,2.",
    ),
]
Delta = Annotated[
    float,
    typer.Option("--delta", "-d", help="Probability with which the guarantee may fail; or 0."),
]
DeltaOfRelease = Annotated[
    float | None,
    typer.Option(
        "--delta",
        "-d",
        help="Probability with which the guarantee may fail; or 0. By default 1e-6, and with "
        "--ledger as much of the ledger's delta as --epsilon is of its epsilon.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "--loss",
        "-m",
        help="logistic, svc, kernel_logistic or kernel_svc for classes; linear, ridge, huber, "
        "quantile, poisson or kernel_ridge for numbers. "
        "additive for either, from a schema alone. By default logistic or linear.",
    ),
]
MechanismName = Annotated[
    str,
    typer.Option(
        "--mechanism",
        help="The mechanism: auto (least predicted cost), "
        f"{', '.join(MECHANISM_NAMES[1:-1])} or {MECHANISM_NAMES[-1]}.",
    ),
]


def _known_relation(word: str) -> str:
    """Check the name of a relation, even if a unit would replace it."""
    from tacit.privacy import Relation

    words = [relation.value for relation in Relation]
    if word not in words:
        raise Refused(f"--relation {word!r} is unknown; choose from {', '.join(words)}.")
    return word


RelationName = Annotated[
    str,
    typer.Option(
        "--relation",
        callback=_known_relation,
        help="Which tables are neighbours: add_remove (one record, or with a unit one person, "
        "added or removed) or replace (one record changed; needs n_records in the schema).",
    ),
]
Inference = Annotated[
    str,
    typer.Option(
        "--inference",
        help="The share of the budget for standard errors, such as 0.1, or auto: the share that "
        "makes intervals shortest for n_records. tacit inspect and the report show them. Values of "
        "a category are then compared with its reference, the first unless the schema declares "
        "one.",
    ),
]


def inference_of(text: str) -> float | str:
    """Return the share of ``--inference``, or "auto".

    Examples
    --------
    >>> from tacit.cli.options import inference_of
    >>> inference_of("0.1"), inference_of("auto")
    (0.1, 'auto')
    """
    if text == "auto":
        return text
    return _number("--inference", text, "a share such as 0.1, or auto")


def numbers_of(option: str, text: str) -> list[float]:
    """Return the numbers of an option that takes several, separated by commas.

    Examples
    --------
    >>> from tacit.cli.options import numbers_of
    >>> numbers_of("--epsilon", "0.5,1")
    [0.5, 1.0]
    """
    return [_number(option, part, "numbers separated by commas") for part in text.split(",")]


def _number(option: str, text: str, wanted: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Refused(f"{option} {text!r} is not a number; pass {wanted}.") from None


Quantile = Annotated[
    float | None, typer.Option("--quantile", help="The quantile of --model quantile.")
]

ClassWeight = Annotated[
    list[str] | None,
    typer.Option(
        "--class-weight",
        help="The weight of a class, as CLASS=NUMBER, once for each class whose weight is not "
        "1; or 'balanced', which counts the classes with a hundredth of the budget.",
    ),
]


def _tab(delimiter: str | None) -> str | None:
    r"""Return a tab for \t, because shells make a tab hard to type."""
    return "\t" if delimiter == r"\t" else delimiter


Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        callback=_tab,
        help=r"The separator of the fields of a .csv file: ',', ';', '|' or '\t'.",
    ),
]
LedgerAddress = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="The ledger: a file, or postgresql://user@host/database?ledger=name, whose password "
        "PostgreSQL takes from ~/.pgpass or PGPASSWORD.",
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="The ledger to charge before the table is read: a file, or a postgresql:// address.",
    ),
]
Analyst = Annotated[
    str | None,
    typer.Option(
        "--analyst",
        help="The analyst whose share of the ledger is charged; a name without one is recorded.",
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition",
        help="The partition of the data that is read, as declared in the ledger; no other record.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", help="A name for readers, written into the ledger.")
]
Purpose = Annotated[
    str | None, typer.Option("--purpose", help="The purpose, written into the ledger.")
]
Certificates = Annotated[
    list[Path] | None,
    typer.Option(
        "--certificate",
        help="A model that was charged to the ledger: a ledger without its entry, such as an older "
        "copy, is refused.",
    ),
]


@dataclasses.dataclass(frozen=True)
class Charge:
    """The options of a command that charges a ledger, for `with_option_blocks`."""

    ledger: LedgerOption = None
    analyst: Analyst = None
    partition: Partition = None
    label: Label = None
    purpose: Purpose = None
    seen: Certificates = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the ledger and the certificates, which no output may replace."""
        from tacit.cli.files import ledger_files

        return (*ledger_files(self.ledger), *(self.seen or ()))

    def accountant(
        self,
        epsilon: float,
        *,
        release: str | None = None,
        table: str | None = None,
        protected: Protected | None = None,
    ) -> Ledger | None:
        """Return the ledger to charge, or None if none was named."""
        from tacit.cli.ledger import ledger_to_charge

        return ledger_to_charge(
            self.ledger,
            self.seen,
            epsilon=epsilon,
            analyst=self.analyst,
            partition=self.partition,
            label=self.label,
            purpose=self.purpose,
            release=release,
            table=table,
            protected=protected,
        )


def with_option_blocks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of each dataclass among its parameters.

    The fields of the dataclass become options, in the place of the parameter.
    """
    signature = inspect.signature(command, eval_str=True)
    blocks: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if dataclasses.is_dataclass(parameter.annotation)
    }
    expanded = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        for option in (
            inspect.signature(blocks[name], eval_str=True).parameters.values()
            if name in blocks
            else [parameter]
        )
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        for name, block in blocks.items():
            own = {field.name: given.pop(field.name) for field in dataclasses.fields(block)}
            given[name] = block(**own)
        command(**given)

    run.__signature__ = signature.replace(parameters=expanded)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in expanded}
    return run


Report = Annotated[
    Path | None, typer.Option("--report", help="Also write a report, one HTML file.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def check_relation(relation: str, schema: Schema, path: Path) -> None:
    """Refuse a relation if the schema lacks the number of records or the unit it needs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tacit.cli.options import check_relation
    >>> from tacit.schema import Number, Schema
    >>> check_relation("replace", Schema((Number("age", 0, 100),)), Path("schema.toml"))
    Traceback (most recent call last):
    tacit.cli.running.Refused: --relation replace makes the number of records public, ...
    """
    if relation == "replace" and schema.unit is not None:
        raise Refused(
            f"--relation replace makes the number of records public, and a person (--unit, or kind "
            f"unit in {path.name}) brings any number of them; leave --relation out."
        )
    if relation == "add_remove_person" and schema.unit is None:
        raise Refused("--relation add_remove_person needs a unit; pass --unit COLUMN.")
    if relation == "replace" and schema.n_records is None:
        raise Refused(
            f"--relation replace makes the number of records public, and {path.name} does not "
            "declare it; if it is public, add the line n_records = ... with the number above "
            "[columns], or leave --relation out."
        )


def warn_if_weak(epsilon: float, delta: float, n_records: int | None) -> None:
    """Warn on standard error about a budget that protects little."""
    from tacit.privacy.budget import weakness

    weak = weakness(epsilon, delta, n_records)
    if weak:
        output.note(weak)
