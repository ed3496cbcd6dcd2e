"""What is said of a budget before it is spent: what it lacks, and that it promises little."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli import output
from tacit.cli.errors import Refused

if TYPE_CHECKING:
    from tacit.preprocessing import Schema

# exp(10) is 22,026: a bet of one in 22,000 that somebody is in the data may become an even one.
_LARGE_EPSILON = 10.0


def check_relation(relation: str, schema: Schema, path: Path) -> None:
    """Refuse the relation replace where the schema does not say how many records there are.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tacit.cli.budget import check_relation
    >>> from tacit.preprocessing import Number, Schema
    >>> check_relation("replace", Schema((Number("age", 0, 100),)), Path("schema.toml"))
    Traceback (most recent call last):
    tacit.cli.errors.Refused: --relation replace makes the number of records public, ...
    """
    if relation == "replace" and schema.n_records is None:
        raise Refused(
            f"--relation replace makes the number of records public, and {path.name} does not say "
            "it; if it may be known, add the line n_records = ... with the number above [columns], "
            "or leave --relation out."
        )


def warn_if_weak(epsilon: float, delta: float, n_records: int | None) -> None:
    """Say on standard error, in one sentence, that a budget promises little."""
    weak = weakness(epsilon, delta, n_records)
    if weak:
        output.note(weak)


def weakness(epsilon: float, delta: float, n_records: int | None) -> str:
    """Return why a budget promises little, in one sentence, or nothing.

    An epsilon of infinity is no weak promise but none, which is said elsewhere.

    Examples
    --------
    >>> from tacit.cli.budget import weakness
    >>> weakness(1.0, 1e-6, 1000)
    ''
    >>> print(weakness(1.0, 0.01, 1000)[:58])
    WEAK PROMISE: delta 0.01 is above 1 in the 1,000 records,
    """
    said = []
    if _LARGE_EPSILON < epsilon < math.inf:
        said.append(
            f"epsilon {epsilon:g} is above {_LARGE_EPSILON:g}, so odds about a record may change "
            f"by a factor of {_power(epsilon)}"
        )
    if n_records is not None and delta * n_records > 1.0:
        said.append(
            f"delta {delta:g} is above 1 in the {n_records:,} records, a promise that "
            "publishing one of them whole, drawn at random, would keep"
        )
    remedy = "take a smaller one" if len(said) == 1 else "take smaller ones"
    return f"WEAK PROMISE: {', and '.join(said)}; {remedy} if you can." if said else ""


def _power(epsilon: float) -> str:
    """Return exp(epsilon), rounded up, in words that fit a sentence."""
    digits = math.ceil(epsilon / math.log(10.0))
    if digits > 6:
        return f"up to 10^{digits}"
    return f"{math.ceil(math.exp(epsilon)):,}"
