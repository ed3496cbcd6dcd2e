"""What is said of a budget before it is spent: what it lacks, and that it promises little."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli import output
from tacit.cli.errors import Refused

if TYPE_CHECKING:
    from tacit.preprocessing import Schema


def check_relation(relation: str, schema: Schema, path: Path) -> None:
    """Refuse a relation where the schema does not say what it needs: how many, or whose.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tacit.cli.budget import check_relation
    >>> from tacit.preprocessing import Number, Schema
    >>> check_relation("replace", Schema((Number("age", 0, 100),)), Path("schema.toml"))
    Traceback (most recent call last):
    tacit.cli.errors.Refused: --relation replace makes the number of records public, ...
    """
    if relation == "replace" and schema.unit is not None:
        raise Refused(
            f"--relation replace makes the number of records public, and a person (--unit, or kind "
            f"unit in {path.name}) brings any number of them; leave --relation out."
        )
    if relation == "add_remove_person" and schema.unit is None:
        raise Refused(
            "--relation add_remove_person, but nothing says whose a record is; pass --unit COLUMN."
        )
    if relation == "replace" and schema.n_records is None:
        raise Refused(
            f"--relation replace makes the number of records public, and {path.name} does not say "
            "it; if it may be known, add the line n_records = ... with the number above [columns], "
            "or leave --relation out."
        )


def warn_if_weak(epsilon: float, delta: float, n_records: int | None) -> None:
    """Say on standard error, in one sentence, that a budget promises little."""
    from tacit.privacy.weakness import weakness

    weak = weakness(epsilon, delta, n_records)
    if weak:
        output.note(weak)
