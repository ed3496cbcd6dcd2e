"""Describe the entries of a ledger for people: what was released, for whom, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tacit.ledger.state import WHOLE, Terms
from tacit.ledger.store import Content, canonical
from tacit.privacy import Guarantee, SumOfEpsilons, SumOrGaussian, event_from_dict

_DECLARED = {
    "created": "the ledger was made",
    "analyst": "analyst declared",
    "partition": "partition declared",
    "released": "file recorded",
}
# An event by what a person would call it. Kinds never change their meaning.
_KINDS = {
    "gaussian": "Gaussian noise",
    "sampled_gaussian": "Gaussian noise on a random sample",
    "smooth_gaussian": "Gaussian noise by smooth sensitivity",
    "noisy_majority": "noisy majority vote",
    "pure_epsilon": "pure release",
    "exponential_mechanism": "exponential mechanism",
    "zero_concentrated": "zero-concentrated release",
    "logistic_objective": "objective perturbation",
    "monotone_objective": "objective perturbation",
    "linear_model_objective": "objective perturbation",
    "log_cosh_objective": "objective perturbation",
    "softmax_objective": "objective perturbation",
    "pure_objective": "pure objective perturbation",
    "rare_leak": "rare leak",
    "non_private": "release without privacy",
}
_MOST_NAMED = 3


@dataclass(frozen=True)
class File:
    """A file that was released for a charge: its name and its SHA-256."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Line:
    """One entry of a ledger in words and figures.

    ``epsilon`` and ``delta`` are those of the release alone, delta as the part that it takes of the
    budget's. They are None for an entry that charges nothing, and epsilon is None if this tacit
    does not know the event.
    """

    number: int
    day: str
    who: str
    what: str
    how: str = ""
    epsilon: float | None = None
    delta: float | None = None
    table: str = ""
    partition: str = ""
    label: str = ""
    purpose: str = ""
    file: File | None = None

    @property
    def is_charge(self) -> bool:
        """Whether the entry charges the budget."""
        return self.delta is not None


def lines(
    entries: Iterable[Content], terms: Terms, files: Mapping[int, File] | None = None
) -> list[Line]:
    """Return entries as lines, in their order; a recorded file is part of the line of its charge.

    Only the first file is. Further ones have lines of their own, so that none replaces another.

    Parameters
    ----------
    entries
        As `tacit.ledger.Ledger.export` yields them.
    terms
        Of the ledger.
    files
        Files of charges by entry, as certificates name them, for charges without a recorded file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.ledger import Ledger
    >>> from tacit.ledger.entries import lines
    >>> from tacit.privacy import Budget, PureEpsilon
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder) / "a.ledger", Budget(1.0))
    ...     paid = ledger.bound(release="a count", table="people.csv").charge(PureEpsilon(0.25))
    ...     line = lines(ledger.export(), ledger.terms)[1]
    >>> line.what, line.how, line.epsilon, line.table
    ('a count', 'pure release', 0.25, 'people.csv')
    """
    found = list(entries)
    shown = {entry["number"] for entry in found if entry["kind"] == "charge"}
    first: dict[int, Content] = {}  # the first record of a file for each charge
    for entry in found:
        if entry["kind"] == "released" and entry["entry"] in shown:
            first.setdefault(entry["entry"], entry)
    released = {**(files or {}), **{paid: _file(entry) for paid, entry in first.items()}}
    return [
        _line(entry, terms, released)
        for entry in found
        if entry["kind"] != "released" or first.get(entry["entry"]) is not entry
    ]


def _line(entry: Content, terms: Terms, released: Mapping[int, File]) -> Line:
    number, day = entry["number"], entry["when"][:10]
    who, analyst = entry["who"], entry.get("analyst")
    whom = f"{who} for {analyst}" if analyst and analyst != who else who
    if entry["kind"] != "charge":
        return Line(number, day, whom, _declared(entry), file=_recorded(entry))
    how = in_words(entry["event"])
    return Line(
        number,
        day,
        whom,
        entry.get("release") or "release",
        how,
        _epsilon(entry, terms),
        entry["delta"] / terms.rule.planning_delta(1.0),
        entry.get("table", ""),
        entry["partition"] or "",
        entry["label"],
        entry["purpose"],
        released.get(number),
    )


def _declared(entry: Content) -> str:
    what = _DECLARED.get(str(entry["kind"]), str(entry["kind"]))
    if entry["kind"] == "analyst":
        most = entry["epsilon"]
        share = "no share" if most is None else f"a share of epsilon {most:g}"
        return f"{what}: {entry['name']}, with {share}"
    if entry["kind"] == "partition":
        return f"{what}: {entry['name']}"
    return f"{what}, for entry {entry['entry']}" if entry["kind"] == "released" else what


def _recorded(entry: Content) -> File | None:
    return _file(entry) if entry["kind"] == "released" else None


def _file(entry: Content) -> File:
    return File(entry.get("file", ""), entry["sha256"])


def _epsilon(entry: Content, terms: Terms) -> float | None:
    """Return the epsilon of the release alone: as it was booked, or computed from its event."""
    if isinstance(terms.rule, SumOfEpsilons | SumOrGaussian):
        # The price of a first release may stand for the whole budget; that of a share does not.
        booked: int = entry.get("share_cost", entry["cost"])[0]
        return booked * terms.limits[0] / WHOLE
    return _epsilon_of(canonical(entry["event"]), entry["delta"])


@lru_cache(maxsize=1024)
def _epsilon_of(event: str, delta: float) -> float | None:
    import json

    try:
        epsilon = Guarantee(event_from_dict(json.loads(event))).epsilon(delta)
    except (ValueError, TypeError, LookupError, ArithmeticError):  # an event of a newer tacit
        return None
    return epsilon if math.isfinite(epsilon) else None


def in_words(event: Mapping[str, Any]) -> str:
    """Return what an event is, for people.

    Examples
    --------
    >>> from tacit.ledger.entries import in_words
    >>> from tacit.privacy import Composed, Gaussian, Parallel, PureEpsilon, Repeated
    >>> in_words(Composed((PureEpsilon(0.1), Repeated(Gaussian(9.0), 3))).to_dict())
    'pure release, together with Gaussian noise (3 times)'
    >>> in_words(Parallel((PureEpsilon(0.1), Gaussian(9.0))).to_dict())
    'on disjoint parts of the records, the costliest counts: pure release; Gaussian noise'
    """
    kind = str(event["kind"])
    if kind == "composed":
        return ", together with ".join(_each(event["events"]))
    if kind == "repeated":
        return f"{in_words(event['event'])} ({event['count']:,} times)"
    if kind == "parallel":
        parts = "; ".join(_each(event["events"]))
        return f"on disjoint parts of the records, the costliest counts: {parts}"
    if kind == "one_of":
        return f"one of these, the costliest counts: {'; '.join(_each(event['events']))}"
    if kind == "best_of":
        return f"best of a random number of tries: {in_words(event['base'])}"
    return _KINDS.get(kind, kind.replace("_", " "))


def _each(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return events in words, equal ones once, and no more than a person reads."""
    counts: dict[str, int] = {}
    for event in events:
        words = in_words(event)
        counts[words] = counts.get(words, 0) + 1
    said = [words if n == 1 else f"{words} ({n:,} times)" for words, n in counts.items()]
    more = len(said) - _MOST_NAMED
    return [*said[:_MOST_NAMED], f"{more} more"] if more > 0 else said
