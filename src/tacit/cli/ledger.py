"""Run ``tacit ledger``, and open the ledger that other commands charge."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new, check_report, ledger_files
from tacit.cli.running import Refused, before_records

if TYPE_CHECKING:
    from tacit.ledger import Ledger, LedgerStatus
    from tacit.ledger.state import Terms
    from tacit.privacy import Event
    from tacit.privacy.guarantee import Booking
    from tacit.saving import Certificate


@dataclass(frozen=True)
class Named:
    """A saved model that names the entry of a ledger which paid for it."""

    path: Path
    sha256: str
    booking: Booking


def certificates_of(paths: list[Path] | None) -> list[Named]:
    """Return what saved models say of the ledger that paid for them."""
    from tacit.saving import inspect

    found = []
    for path in paths or ():
        certificate = inspect(path)
        booking = certificate.privacy.booking
        if booking is None:
            raise Refused(f"{path.name} names no ledger: it was fitted without one; leave it out.")
        found.append(Named(path, certificate.sha256, booking))
    return found


def bookings(certificates: list[Path] | None) -> list[Booking]:
    """Return the ledger entries named by saved models."""
    return [named.booking for named in certificates_of(certificates)]


@dataclass(frozen=True)
class Protected:
    """What a command protects: a person, by the column ``unit``, or a record if it is None."""

    unit: str | None
    columns: tuple[str, ...] = ()

    def check(self, opened: Ledger) -> None:
        """Refuse a ledger that protects records where a person is asked for, or the reverse."""
        of_people = opened.budget.relation.by_person
        if self.unit is not None and not of_people:
            near = difflib.get_close_matches(self.unit, self.columns, 1)
            meant = f" (did you mean {near[0]!r}?)" if near and near[0] != self.unit else ""
            unknown = "" if self.unit in self.columns else f", which the schema lacks{meant}"
            raise Refused(
                f"the unit is the column {self.unit!r}{unknown}: it protects a person with all "
                f"their records, and the ledger {opened.address} protects single records. Leave "
                "the unit out, or charge a ledger made with --relation add_remove_person."
            )
        if self.unit is None and of_people:
            raise Refused(
                f"the ledger {opened.address} protects people, and no unit is named; pass --unit "
                "with the column that identifies the person of a record."
            )


def ledger_to_charge(
    address: str | None,
    certificates: list[Path] | None,
    *,
    epsilon: float | None = None,
    analyst: str | None,
    partition: str | None,
    label: str | None,
    purpose: str | None,
    release: str | None = None,
    table: str | None = None,
    protected: Protected | None = None,
) -> Ledger | None:
    """Return the ledger to charge, or None if none was named.

    ``release`` and ``table`` are notes for readers of the ledger; ``protected`` is what the command
    protects, which the ledger must protect too.

    Examples
    --------
    >>> from tacit.cli.ledger import ledger_to_charge
    >>> ledger_to_charge(None, None, analyst="ann", partition=None, label=None, purpose=None)
    Traceback (most recent call last):
    tacit.cli.running.Refused: --analyst needs a ledger; pass --ledger as well.
    """
    from tacit.ledger import Ledger

    said = {"analyst": analyst, "partition": partition, "label": label, "purpose": purpose}
    if address is None:
        for name, value in {**said, "certificate": certificates}.items():
            if value:
                raise Refused(f"--{name} needs a ledger; pass --ledger as well.")
        return None
    if epsilon is not None and math.isinf(epsilon):
        raise Refused(
            "--epsilon inf has no finite cost, so it cannot be charged; choose a finite epsilon, "
            "or leave --ledger out."
        )
    opened = Ledger.open(address, seen=bookings(certificates))
    if protected is not None:
        protected.check(opened)
    return opened.bound(
        analyst=analyst,
        partition=partition,
        label=label,
        purpose=purpose,
        release=release,
        # A name of a file may be longer than a note.
        table=None if table is None else table[:200],
    )


# Of a release that no ledger pays for.
_DELTA = 1e-6


def delta_of_release(delta: float | None, epsilon: float, ledger: Ledger | None) -> float:
    """Return the delta of a release: as given, or its part of the ledger's delta.

    Releases whose epsilons add up to the ledger's then have deltas that do.

    Examples
    --------
    >>> from tacit.cli.ledger import delta_of_release
    >>> delta_of_release(None, 0.5, None), delta_of_release(1e-7, 0.5, None)
    (1e-06, 1e-07)
    """
    if delta is not None or ledger is None:
        return _DELTA if delta is None else delta
    return ledger.budget.delta * min(max(epsilon, 0.0) / ledger.budget.epsilon, 1.0)


def record_file(ledger: Ledger | None, out: Path, certificate: Certificate) -> None:
    """Write the SHA-256 of a saved model into the ledger that paid for it.

    The model is released already, so that a ledger which cannot be written is no error of the fit.
    """
    booking = certificate.privacy.booking
    if ledger is None or booking is None:
        return
    from tacit.ledger import LedgerError

    try:
        ledger.add_file(booking, certificate.sha256, out.name[:200])
    except (LedgerError, ValueError, OSError) as why:
        output.note(f"the model is saved and paid for, but its SHA-256 is not in the ledger: {why}")


_ADDS_UP = (
    "spent is the lesser of two sums, of epsilons and of noise: many releases cost less than their "
    "epsilons add up to"
)

ledger = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

Analysts = Annotated[
    list[str] | None,
    typer.Option(
        "--analyst",
        help="An analyst's share, as NAME=EPSILON; it cannot be changed. NAME alone has no share, "
        "and may spend what is left of the budget.",
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        help="A partition of the data, disjoint from all others, such as a window of time.",
    ),
]


@ledger.callback()
def _group(context: typer.Context) -> None:
    """Share one budget between all releases from a data set."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@ledger.command()
def create(
    address: opt.LedgerAddress,
    epsilon: opt.Epsilon,
    delta: opt.Delta = 1e-6,
    rule: Annotated[
        str | None,
        typer.Option(
            "--rule",
            help="The composition rule: either (the better of sums of epsilon and of squared mu; "
            "the default), sum (the default if delta is 0), gaussian, renyi or odometer.",
        ),
    ] = None,
    relation: opt.RelationName = "add_remove",
    analyst: Analysts = None,
    partition: Partitions = None,
    label: opt.Label = None,
    purpose: opt.Purpose = None,
    as_json: opt.AsJson = False,
) -> None:
    """Create a ledger with a budget that cannot be changed.

    \b
    Examples:
      tacit ledger create survey.ledger --epsilon 3 --delta 1e-6 --label "Survey of 2026"
      tacit ledger create survey.ledger --epsilon 3 --analyst ann=1 --analyst bo=2
    """  # noqa: D301
    from tacit.ledger import Ledger
    from tacit.ledger.state import Terms, rule_for
    from tacit.privacy import Budget, Relation

    with before_records():
        shares = _shares(analyst)
        budget = Budget(epsilon, delta, Relation(relation))
        _check_declared(Terms("", budget, rule_for(rule, budget)), shares, partition)
        made = Ledger.create(address, budget, rule, label=label or "", purpose=purpose or "")
        _declared(made, shares, partition)
    _show(made, as_json)


@ledger.command()
def declare(
    address: opt.LedgerAddress,
    analyst: Analysts = None,
    partition: Partitions = None,
    as_json: opt.AsJson = False,
) -> None:
    """Give analysts a share of the budget, or declare disjoint partitions of the data.

    \b
    Examples:
      tacit ledger declare survey.ledger --partition 2027
      tacit ledger declare survey.ledger --analyst ann=0.5
    """  # noqa: D301
    from tacit.ledger import Ledger

    with before_records():
        opened, shares = Ledger.open(address), _shares(analyst)
        _check_declared(opened.terms, shares, partition)
        _declared(opened, shares, partition)
    _show(opened, as_json)


@ledger.command()
def show(
    address: opt.LedgerAddress,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write a page with the history, one file.")
    ] = None,
    certificate: opt.Certificates = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Show the budget spent, the releases still possible, and the last entries.

    \b
    Examples:
      tacit ledger show survey.ledger
      tacit ledger show survey.ledger --html ledger.html
    """  # noqa: D301
    from tacit.cli.ledger_history import last_lines, records_of, show_history
    from tacit.ledger import Ledger
    from tacit.ledger.entries import File

    with before_records():
        check_report(html, force, *ledger_files(address))
        named = certificates_of(certificate)
        opened = Ledger.open(address, seen=[each.booking for each in named])
    files = {each.booking.entry: File(each.path.name, each.sha256) for each in named}
    if html is not None:
        from tacit.report import write_ledger

        write_ledger(html, opened, files=files)
    found = last_lines(opened, files)
    _show(opened, as_json, {"entries": records_of(found)})
    if not as_json:
        show_history(found)
    if html is not None and not as_json:
        output.note(f"wrote {html}")


@ledger.command()
def charge(
    address: opt.LedgerAddress,
    pure: Annotated[
        float | None, typer.Option("--pure", help="Charge a pure release of this epsilon.")
    ] = None,
    gaussian: Annotated[
        float | None,
        typer.Option("--gaussian", help="Charge a Gaussian release of this noise multiplier."),
    ] = None,
    zcdp: Annotated[
        float | None, typer.Option("--zcdp", help="Charge a release that is rho-zCDP.")
    ] = None,
    times: Annotated[int, typer.Option("--times", help="Number of such releases.")] = 1,
    key: Annotated[
        str | None,
        typer.Option("--key", help="A name for this release; repetitions are not charged."),
    ] = None,
    analyst: opt.Analyst = None,
    partition: opt.Partition = None,
    label: opt.Label = None,
    purpose: opt.Purpose = None,
    certificate: opt.Certificates = None,
    as_json: opt.AsJson = False,
) -> None:
    """Charge a release made elsewhere, before it is made.

    \b
    Examples:
      tacit ledger charge survey.ledger --pure 0.1 --purpose "a count, by hand"
      tacit ledger charge survey.ledger --gaussian 20 --times 3 --key march-report
    """  # noqa: D301
    with before_records():
        opened = ledger_to_charge(
            address,
            certificate,
            analyst=analyst,
            partition=partition,
            label=label,
            purpose=purpose,
        )
        assert opened is not None
        opened = opened.bound(release="release made elsewhere")
        event = _event(opened, pure, gaussian, zcdp, times)
        newest = opened.head.entry
        paid = opened.charge(event, key=key)
    again = paid.booking.entry <= newest  # the key was charged before
    if as_json:
        record = {"spent": float(paid), **paid.booking.to_dict(), "already_booked": again}
        output.document(record)
        return
    where = f"entry {paid.booking.entry} of ledger {paid.booking.ledger}"
    output.facts(
        {
            "booked": f"already, as {where}; nothing was charged" if again else where,
            "head": paid.booking.head,
            "spent": f"epsilon {_up(paid)} of {opened.budget.epsilon:g}",
        }
    )


@ledger.command()
def verify(
    address: opt.LedgerAddress,
    certificate: opt.Certificates = None,
    prices: Annotated[
        bool, typer.Option("--prices", help="Also recompute the cost of each release.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Verify the hash chain of all entries, and name the first wrong one.

    A truncated or older copy has a valid chain too: only a newer entry reveals it.
    Pass the newest models that were charged to the ledger.

    \b
    Examples:
      tacit ledger verify survey.ledger
      tacit ledger verify survey.ledger --certificate model.tacit
    """  # noqa: D301
    from tacit.ledger import Ledger

    with before_records():
        named = certificates_of(certificate)
        opened = Ledger.open(address)
        found = opened.verify(seen=[each.booking for each in named], prices=prices)
    if as_json:
        certificates = [
            {"file": str(each.path), "sha256": each.sha256, "entry": each.booking.entry}
            for each in named
        ]
        output.document(
            {
                "entries": found.entries,
                "spent": found.spent,
                "head": found.head.to_dict(),
                "certificates": certificates,
            }
        )
        return
    output.facts(
        {
            "in order": f"{found.entries} entries, from the first to the last",
            "ledger": found.head.ledger,
            "head": f"entry {found.head.entry}, {found.head.head}",
            "spent": f"epsilon {_up(found.spent)} of {opened.budget.epsilon:g}",
        }
    )
    if named:
        rows = [
            (each.path.name, f"found: entry {each.booking.entry}", each.sha256) for each in named
        ]
        output.table("Certificates", ("certificate", "in the ledger", "SHA-256"), rows, texts=3)
    else:
        output.note(
            "no certificate was given; a cut end or an older copy shows only beside a newer one"
        )


@ledger.command()
def export(
    address: opt.LedgerAddress,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write; by default to the screen.")
    ] = None,
    force: opt.Force = False,
    as_json: opt.AsJson = False,
) -> None:
    """Print every entry, oldest first: one JSON document a line, or a single one with --json.

    \b
    Examples:
      tacit ledger export survey.ledger --out survey.jsonl
      tacit ledger export survey.ledger | jq -r .purpose
    """  # noqa: D301
    from tacit.ledger import Ledger
    from tacit.saving.container import write_whole

    check_new(out, force, *ledger_files(address))
    entries = Ledger.open(address).export()
    if as_json and out is None:
        output.document({"entries": list(entries)})
        return
    lines = (json.dumps(entry, sort_keys=True) for entry in entries)
    if out is not None:
        write_whole(out, "".join(f"{line}\n" for line in lines).encode("utf-8"))
        output.note(f"wrote {out}")
        return
    for line in lines:
        output.say(line)


def _shares(analysts: list[str] | None) -> dict[str, float | None]:
    shares: dict[str, float | None] = {}
    for word in analysts or ():
        name, divided, epsilon = word.rpartition("=")
        name = name if divided else word
        if name in shares:
            raise Refused(f"--analyst {name!r} is given twice; give each share once.")
        try:
            shares[name] = float(epsilon) if divided else None
        except ValueError:
            raise Refused(f"--analyst {word!r} is not NAME=EPSILON, such as ann=0.5.") from None
    return shares


def _check_declared(
    terms: Terms, shares: dict[str, float | None], partitions: list[str] | None
) -> None:
    """Check all declarations before the first is made, so that none is made in part."""
    from tacit.ledger.rules import analyst_of, declared, partition_of
    from tacit.ledger.state import State

    state = State((0,) * len(terms.limits))
    for name, epsilon in shares.items():
        state = declared(analyst_of(terms, name, epsilon), state)
    for name in partitions or ():
        state = declared(partition_of(terms, name), state)


def _declared(
    opened: Ledger, shares: dict[str, float | None], partitions: list[str] | None
) -> None:
    for name, epsilon in shares.items():
        opened.add_analyst(name, epsilon)
    for name in partitions or ():
        opened.add_partition(name)


def _event(
    opened: Ledger, pure: float | None, gaussian: float | None, zcdp: float | None, times: int
) -> Event:
    from tacit.privacy import Gaussian, PureEpsilon, Repeated, ZeroConcentrated

    relation = opened.budget.relation
    kinds: list[tuple[Any, float | None]] = [
        (PureEpsilon, pure),
        (Gaussian, gaussian),
        (ZeroConcentrated, zcdp),
    ]
    requested = [kind(value, relation=relation) for kind, value in kinds if value is not None]
    if len(requested) != 1:
        raise Refused("give exactly one of --pure, --gaussian and --zcdp.")
    (event,) = requested
    return event if times == 1 else Repeated(event, times)


def _show(opened: Ledger, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    from tacit.ledger import status
    from tacit.privacy import SumOrGaussian
    from tacit.report.wording import rounded_up

    now = status(opened)
    if as_json:
        output.document({**_record(opened, now), **(more or {})})
        return
    budget = now.terms.budget
    adds = {"adds up": _ADDS_UP} if isinstance(now.terms.rule, SumOrGaussian) else {}
    output.facts(
        {
            "ledger": f"{opened.address} ({now.head.ledger})",
            "budget": f"{budget}, by the rule {now.terms.to_dict()['rule']['name']}",
            "spent": f"{output.bar(now.share)} {rounded_up(100 * now.share, 1)} %",
            "epsilon": f"{_up(now.spent)} spent of {budget.epsilon:g}, {_down(now.left)} left",
            "next": now.accepts,
            **adds,
            "head": f"entry {now.head.entry}, {now.head.head}",
        }
    )
    output.table(
        f"{_kind(budget.is_pure)} releases that would still be accepted",
        ("epsilon of each", "number"),
        [(f"{epsilon:g}", f"{n:,}") for epsilon, n in now.buys],
    )
    for kind, accounts in (("analyst", now.analysts), ("partition", now.partitions)):
        of_analysts = kind == "analyst"
        header = (kind, *["share"] * of_analysts, "spent", "left", "largest release")
        rows = [
            (
                a.name,
                *(["none" if a.cap is None else f"{a.cap:g}"] * of_analysts),
                _up(a.spent),
                _down(a.left),
                _down(a.largest),
            )
            for a in accounts
        ]
        if rows:
            output.table(f"By {kind}", header, rows, long_names=True)


def _kind(is_pure: bool) -> str:
    return "Pure" if is_pure else "Gaussian"


def _up(epsilon: float) -> str:
    """Format a cost with four decimals, rounded up, as the page does; a small one with more."""
    return f"{_digits(epsilon, ROUND_CEILING):.12g}"


def _down(epsilon: float) -> str:
    """Format a remaining budget with four decimals, rounded down; a small one with more."""
    return f"{_digits(epsilon, ROUND_FLOOR):.12g}"


def _digits(value: float, rounding: str) -> float:
    if not math.isfinite(value):
        return value
    # Round to twelve digits first, so that the float 0.1 + 0.2 counts as 0.3.
    before_the_point = len(str(int(value))) if value >= 1.0 else 0
    context = Context(prec=4 + before_the_point, rounding=rounding)
    return float(context.create_decimal(f"{value:.12g}"))


def _record(opened: Ledger, now: LedgerStatus) -> dict[str, Any]:
    accounts = {"analysts": now.analysts, "partitions": now.partitions}
    return {
        "address": opened.address,
        **now.terms.to_dict(),
        "spent": now.spent,
        "left": now.left,
        "largest": now.largest,
        "accepts": now.accepts,
        "share": now.share,
        "head": now.head.to_dict(),
        "buys": [{"epsilon": epsilon, "releases": n} for epsilon, n in now.buys],
        **{kind: [vars(account) for account in found] for kind, found in accounts.items()},
    }
