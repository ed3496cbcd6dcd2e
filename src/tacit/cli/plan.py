"""Run ``tacit plan``: predict mechanism, noise and accuracy without data."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.options import warn_if_weak
from tacit.cli.running import Refused, before_records

_MOST_ROWS = 10**12
# Default of --gap, as a share of the loss of guessing.
_WANTED_SHARE = 0.01
# The planner assumes that half of the loss of guessing can be explained. Above this share of it,
# the gap leaves hardly anything to learn.
_DROWNED = 0.4


def plan(
    rows: Annotated[
        int,
        typer.Option(
            "--rows",
            "-n",
            help="Approximate number of records; with a unit, of people.",
        ),
    ],
    epsilon: opt.Epsilon,
    delta: opt.Delta = 1e-6,
    columns: Annotated[
        int | None,
        typer.Option("--columns", help="Number of encoded features; or pass --schema."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Take columns, classes and range from a schema.")
    ] = None,
    target: opt.TargetColumn = None,
    unit: opt.UnitColumn = None,
    model: opt.Model = None,
    classes: Annotated[
        int, typer.Option("--classes", help="Number of classes, without a schema.")
    ] = 2,
    label_range: Annotated[
        tuple[float, float],
        typer.Option("--range", help="Least and greatest label, without a schema."),
    ] = (0.0, 1.0),
    row_norm: Annotated[
        float | None,
        typer.Option("--row-norm", help="Largest norm of a row; by default sqrt(columns)."),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option("--gap", help="The acceptable gap (see above); gives the rows needed."),
    ] = None,
    public_rows: Annotated[
        bool, typer.Option("--public-rows", help="The number of records is public.")
    ] = False,
    mechanism: opt.MechanismName = "auto",
    relation: opt.RelationName = "add_remove",
    quantile: opt.Quantile = None,
    class_weight: opt.ClassWeight = None,
    as_json: opt.AsJson = False,
) -> None:
    """Predict noise and accuracy, without data.

    Shows the mechanism that would run, its noise, its predicted cost and the number of rows that
    would be enough.

    The gap is the predicted difference in average loss between the private model and the best
    model. It is an estimate for comparison, not a guarantee: one prediction in five is off by more
    than a factor of three.

    \b
    Examples:
      tacit plan --rows 30000 --columns 100 --epsilon 1 --delta 1e-6 --loss logistic
      tacit plan --rows 30000 --schema schema.toml --epsilon 0.5 --gap 0.001
      tacit plan --rows 5000 --columns 12 --epsilon 1 --model linear --range 0 200 --json
    """  # noqa: D301
    from tacit.cli.models import ADDITIVE, NETWORKS, class_weight_of, make_estimator

    if rows < 1 or (columns is not None and columns < 1):
        raise Refused("--rows and --columns must be at least 1; give approximate numbers.")
    if gap is not None and not 0.0 < gap < math.inf:
        raise Refused(f"--gap must be positive, got {gap:g}; give the acceptable loss.")
    if model == ADDITIVE:
        _plan_additive(rows, epsilon, delta, schema, target, unit, relation, as_json)
        return
    with before_records():
        kind, n_features, facts = _shape(
            schema, target, unit, model, columns, classes, label_range, row_norm
        )
        if facts.pop("by_person"):
            if relation == "replace":
                raise Refused(
                    "--relation replace makes the number of records public, and a person (--unit) "
                    "has any number of records; leave --relation out."
                )
            relation = "add_remove_person"
        if public_rows or relation == "replace":
            facts["n_records"] = rows
        estimator = make_estimator(
            kind,
            epsilon,
            delta,
            mechanism=mechanism,
            relation=relation,
            quantile=quantile,
            class_weight=class_weight_of(class_weight, facts.get("classes", [])),
            **facts,
        )
        made = estimator.plan(n_features, rows)
        known = _known(kind.word, made, rows, n_features)
        of_network = kind.word in NETWORKS
        record = known if of_network else _record(known, estimator, made, rows, gap)
    warn_if_weak(epsilon, delta, rows)
    if as_json:
        output.document(record)
    elif of_network:
        output.say(str(made))
        output.note("The accuracy of a network cannot be predicted from public facts.")
    else:
        _show(record)


def _plan_additive(
    rows: int,
    epsilon: float,
    delta: float,
    schema: Path | None,
    target: str | None,
    unit: str | None,
    relation: str,
    as_json: bool,
) -> None:
    """Show the plan of an additive model."""
    from tacit.cli.fit import read_schema
    from tacit.cli.models import ADDITIVE, make_additive

    with before_records():
        if schema is None:
            raise Refused("--model additive needs --schema, whose columns it reads.")
        declared = read_schema(schema, target, unit)
        made = make_additive(declared, epsilon, delta, relation=relation, allow_unconfirmed=True)
        plan = made.plan(rows)
    warn_if_weak(epsilon, delta, rows)
    if as_json:
        known = _known(ADDITIVE, plan, rows, len(declared.encoded))
        output.document({**known, "shares": dict(plan.shares), "notes": list(plan.notes)})
    else:
        output.say(str(plan))


def _shape(
    schema: Path | None,
    target: str | None,
    unit: str | None,
    model: str | None,
    columns: int | None,
    classes: int,
    label_range: tuple[float, float],
    row_norm: float | None,
) -> tuple[Any, int, dict[str, Any]]:
    """Return the model, the number of features and the other public facts."""
    from tacit.cli.fit import read_schema
    from tacit.cli.models import kind_for, model_kind
    from tacit.registry import Predicts

    if (schema is None) == (columns is None):
        raise Refused("give the number of features, with either --columns or --schema.")
    if schema is not None:
        declared = read_schema(schema, target, unit)
        facts = declared.facts.parameters()
        facts["by_person"] = declared.unit is not None
        if row_norm is not None:
            facts["row_norm"] = row_norm
        return kind_for(declared, model), len(declared.feature_names), facts
    assert columns is not None
    kind = model_kind(model or "logistic")
    facts = {"n_records": None, "row_norm": math.sqrt(columns) if row_norm is None else row_norm}
    facts["by_person"] = unit is not None
    if kind.predicts is Predicts.NUMBERS:
        return kind, columns, {**facts, "label_range": label_range}
    if classes < 2 or (kind.two_classes and classes != 2):
        raise Refused(f"--classes {classes}: svc takes two classes, logistic two or more.")
    return kind, columns, {**facts, "classes": list(range(classes))}


def _known(name: str, made: Any, rows: int, n_features: int) -> dict[str, Any]:
    """Return the entries that all plans have."""
    return {
        "model": name,
        "epsilon": made.budget.epsilon,
        "delta": made.budget.delta,
        "relation": made.budget.relation.value,
        "rows": rows,
        "features": n_features,
        "mechanism": made.name,
        "reason": made.reason,
        "settings": dict(made.settings),
    }


def _record(
    known: dict[str, Any], estimator: Any, made: Any, rows: int, gap: float | None
) -> dict[str, Any]:
    from tacit.report.wording import mechanisms_for

    objective = made.problem.objective
    guess = objective.loss.guess(objective.bounds)
    wanted = gap if gap is not None else _WANTED_SHARE * guess
    n_features = made.problem.n_features

    def gap_at(n: int) -> float:
        if estimator.n_records is not None:
            estimator.set_params(n_records=n)
        risk: float = estimator.plan(n_features, n).excess_risk
        return risk

    public = estimator.n_records is not None
    needed = rows_for(wanted, gap_at, rows)
    if public:
        estimator.set_params(n_records=rows)
    return {
        **known,
        "rows_are_public": public,
        "row_norm": made.problem.objective.bounds.row_norm,
        "gap": made.excess_risk,
        "loss_of_guessing": guess,
        "wanted_gap": wanted,
        "rows_needed": needed,
        "mechanisms": [
            {"mechanism": m.name, "gap": m.excess_risk, "noise": m.noise, "chosen": m.chosen}
            for m in mechanisms_for(estimator, made, rows)
        ],
    }


def rows_for(gap: float, gap_at: Callable[[int], float], start: int) -> int | None:
    """Find approximately how many rows bring the predicted gap to ``gap``; None if impossible.

    Examples
    --------
    >>> from tacit.cli.plan import rows_for
    >>> rows_for(0.01, lambda n: 10_600 / n**2, start=100)
    1100
    """
    low, high = 0, max(start, 1)
    while gap_at(high) > gap:
        low, high = high, 4 * high
        if high > _MOST_ROWS:
            return None
    while low == 0 and high > 1:
        if gap_at(high // 4 or 1) > gap:
            low = high // 4 or 1
        else:
            high = high // 4 or 1
    # Bisect to a relative accuracy of 1 %.
    while high - low > 1 and high > 1.01 * low:
        middle = round(math.sqrt(low * high)) if low else 1
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if gap_at(middle) <= gap else (middle, high)
    return _rounded_up(high)


def _rounded_up(n: int) -> int:
    """Round ``n`` up to two digits."""
    unit: int = 10 ** max(len(str(n)) - 2, 0)
    return (n + unit - 1) // unit * unit


def _show(record: dict[str, Any]) -> None:
    share = record["gap"] / record["loss_of_guessing"]
    needed = record["rows_needed"]
    noise = next(m["noise"] for m in record["mechanisms"] if m["chosen"])
    what = "people" if record["relation"] == "add_remove_person" else "rows"
    output.facts(
        {
            "model": f"{record['model']}, {record['features']} features, {record['rows']:,} {what}",
            "budget": f"epsilon {record['epsilon']:g}, delta {record['delta']:g}, "
            f"{record['relation']}",
            "mechanism": f"{record['mechanism']}: {record['reason']}",
            "noise": noise,
            "predicted gap": f"{record['gap']:.2g} a record, {100 * share:.2g} % of the loss of "
            f"guessing ({record['loss_of_guessing']:.3g}); four predictions in five are within a "
            "factor of three",
            f"{what} needed": (
                f"no number of {what}" if needed is None else f"about {needed:,} {what}"
            )
            + f" for a gap of {record['wanted_gap']:.2g}",
        }
    )
    if share >= _DROWNED:
        output.note(
            f"Noise would dominate the model: use more {what}, fewer columns or a larger epsilon."
        )
    rows = [
        (
            ("* " if m["chosen"] else "  ") + m["mechanism"],
            "-" if m["gap"] is None else f"{m['gap']:.3g}",
            m["noise"],
        )
        for m in record["mechanisms"]
    ]
    output.say()
    output.table("Predicted cost of each mechanism", ("mechanism", "gap", "noise"), rows, texts=3)
