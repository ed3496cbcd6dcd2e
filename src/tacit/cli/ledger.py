"""Run ``tacit ledger``, and open the ledger that other commands charge."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.running import Refused

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.privacy.guarantee import Booking
import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.files import check_new, check_report
from tacit.cli.running import before_records

if TYPE_CHECKING:
    from tacit.ledger import Ledger, LedgerStatus
    from tacit.ledger.state import Terms
    from tacit.privacy import Event


def bookings(certificates: list[Path] | None) -> list[Booking]:
    """Return the ledger entries named by saved models."""
    from tacit.saving import inspect

    found = []
    for path in certificates or ():
        booking = inspect(path).privacy.booking
        if booking is None:
            raise Refused(f"{path.name} names no ledger: it was fitted without one; leave it out.")
        found.append(booking)
    return found


def ledger_to_charge(
    address: str | None,
    certificates: list[Path] | None,
    *,
    epsilon: float | None = None,
    analyst: str | None,
    partition: str | None,
    label: str | None,
    purpose: str | None,
) -> Ledger | None:
    """Return the ledger to charge, or None if none was named.

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
    return opened.bound(analyst=analyst, partition=partition, label=label, purpose=purpose)


_ADDS_UP = "epsilon is that of all releases together: at most the sum of theirs"

ledger = typer.Typer(invoke_without_command=True, rich_markup_mode=None)

Analysts = Annotated[
    list[str] | None,
    typer.Option("--analyst", help="An analyst's share, as NAME=EPSILON; it cannot be changed."),
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
    from tacit.cli.ledger_history import show_history
    from tacit.ledger import Ledger

    with before_records():
        check_report(html, force)
        opened = Ledger.open(address, seen=bookings(certificate))
    if html is not None:
        from tacit.report import write_ledger

        write_ledger(html, opened)
    _show(opened, as_json)
    if not as_json:
        show_history(opened)
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
        found = Ledger.open(address).verify(seen=bookings(certificate), prices=prices)
    if as_json:
        output.document(
            {"entries": found.entries, "spent": found.spent, "head": found.head.to_dict()}
        )
        return
    output.facts(
        {
            "in order": f"{found.entries} entries, from the first to the last",
            "ledger": found.head.ledger,
            "head": f"entry {found.head.entry}, {found.head.head}",
            "spent": f"epsilon {_up(found.spent)}",
        }
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

    check_new(out, force)
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


def _shares(analysts: list[str] | None) -> dict[str, float]:
    shares = {}
    for word in analysts or ():
        name, _, epsilon = word.rpartition("=")
        if name in shares:
            raise Refused(f"--analyst {name!r} is given twice; give each share once.")
        try:
            shares[name] = float(epsilon)
        except ValueError:
            raise Refused(f"--analyst {word!r} is not NAME=EPSILON, such as ann=0.5.") from None
    return shares


def _check_declared(terms: Terms, shares: dict[str, float], partitions: list[str] | None) -> None:
    """Check all declarations before the first is made, so that none is made in part."""
    from tacit.ledger.rules import analyst_of, declared, partition_of
    from tacit.ledger.state import State

    state = State((0,) * len(terms.most))
    for name, epsilon in shares.items():
        state = declared(analyst_of(terms, name, epsilon), state)
    for name in partitions or ():
        state = declared(partition_of(terms, name), state)


def _declared(opened: Ledger, shares: dict[str, float], partitions: list[str] | None) -> None:
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


def _show(opened: Ledger, as_json: bool) -> None:
    from tacit.ledger import status
    from tacit.privacy import SumOrGaussian
    from tacit.report.wording import rounded_up

    now = status(opened)
    if as_json:
        output.document(_record(opened, now))
        return
    budget = now.terms.budget
    adds = {"adds up": _ADDS_UP} if isinstance(now.terms.rule, SumOrGaussian) else {}
    output.facts(
        {
            "ledger": f"{opened.address} ({now.head.ledger})",
            "budget": f"{budget}, by {type(now.terms.rule).__name__}",
            "spent": f"{output.bar(now.share)} {rounded_up(100 * now.share, 1)} %",
            "epsilon": f"{_up(now.spent)} spent; a release of {_down(now.left)} would be accepted",
            **adds,
            "head": f"entry {now.head.entry}, {now.head.head}",
        }
    )
    output.table(
        "Releases that would still be accepted",
        ("epsilon of each", "number"),
        [(f"{epsilon:g}", f"{n:,}") for epsilon, n in now.buys],
    )
    for kind, accounts in (("analyst", now.analysts), ("partition", now.partitions)):
        rows = [(a.name, _up(a.spent), _down(a.left)) for a in accounts]
        if rows:
            output.table(f"By {kind}", (kind, "spent", "left"), rows, long_names=True)


def _up(epsilon: float) -> str:
    """Format a cost with four digits, rounded up."""
    return f"{_digits(epsilon, ROUND_CEILING):g}"


def _down(epsilon: float) -> str:
    """Format a remaining budget with four digits, rounded down."""
    return f"{_digits(epsilon, ROUND_FLOOR):g}"


def _digits(value: float, rounding: str) -> float:
    # Round to twelve digits first, so that the float 0.1 + 0.2 counts as 0.3.
    return float(Context(prec=4, rounding=rounding).create_decimal(f"{value:.12g}"))


def _record(opened: Ledger, now: LedgerStatus) -> dict[str, Any]:
    accounts = {"analysts": now.analysts, "partitions": now.partitions}
    return {
        "address": opened.address,
        **now.terms.to_dict(),
        "spent": now.spent,
        "left": now.left,
        "share": now.share,
        "head": now.head.to_dict(),
        "buys": [{"epsilon": epsilon, "releases": n} for epsilon, n in now.buys],
        **{kind: [vars(account) for account in found] for kind, found in accounts.items()},
    }
