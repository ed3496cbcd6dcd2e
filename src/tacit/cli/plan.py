"""Run ``tacit plan``: predict mechanism, noise and accuracy without data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import options as opt
from tacit.cli import output
from tacit.cli.options import warn_if_weak
from tacit.cli.running import Refused, before_records

# The least and greatest value of each feature, by column.
Ranges = Sequence[Sequence[tuple[float, float]]]

_MOST_ROWS = 10**12
# Default of --gap, as a share of the loss of guessing.
_WANTED_SHARE = 0.01
# The planner assumes that half of the loss of guessing can be explained. Above this share of it,
# the gap leaves hardly anything to learn.
_DROWNED = 0.4


def plan(
    rows: Annotated[
        str,
        typer.Option(
            "--rows",
            "-n",
            help="Approximate number of records; with a unit, of people. Several with commas.",
        ),
    ],
    epsilon: opt.Epsilons,
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
    inference: opt.Inference = "0",
    evaluate: Annotated[
        float,
        typer.Option(
            "--evaluate",
            help="The share of records to hold out, as in tacit fit: tells whether an AUC will be "
            "released.",
        ),
    ] = 0.0,
    rarer: Annotated[
        float | None,
        typer.Option(
            "--rarer",
            help="The share of the rarer of two classes, as you expect it; by default 0.25.",
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Predict noise and accuracy, without data.

    Shows the mechanism that would run, its noise, its predicted cost and the number of rows that
    would be enough.

    The gap is the predicted difference in average loss between the private model and the best
    model. It is an estimate for comparison, not a guarantee: one prediction in five is off by more
    than a factor of three.

    With --inference, predicts the standard error of a standardised coefficient: the effect of one
    standard deviation of a feature. It stands beside the sampling error, which a fit without noise
    has. The verdict is good up to 1.25 times the sampling error, fair up to 2, wide up to 5, and
    useless above. Features are assumed to be typical of their declared ranges. Several budgets or
    numbers of rows give one table.

    \b
    Examples:
      tacit plan --rows 30000 --columns 100 --epsilon 1 --delta 1e-6 --loss logistic
      tacit plan --rows 30000 --schema schema.toml --epsilon 0.5 --gap 0.001
      tacit plan --rows 5000 --columns 12 --epsilon 1 --model linear --range 0 200 --json
      tacit plan --rows 30000 --schema schema.toml --epsilon 0.5,1,2,4 --inference 0.2 \\
          --evaluate 0.1
    """  # noqa: D301
    from tacit.cli.models import ADDITIVE, NETWORKS, class_weight_of, make_estimator

    budgets, sizes = opt.numbers_of("--epsilon", epsilon), _whole_numbers("--rows", rows)
    share = opt.inference_of(inference)
    if min(sizes) < 1 or (columns is not None and columns < 1):
        raise Refused("--rows and --columns must be at least 1; give approximate numbers.")
    if gap is not None and not 0.0 < gap < math.inf:
        raise Refused(f"--gap must be positive, got {gap:g}; give the acceptable loss.")
    if not 0.0 <= evaluate < 1.0:
        raise Refused(f"--evaluate must be a share below 1, got {evaluate:g}; 0.1 is usual.")
    if rarer is not None and not 0.0 < rarer <= 0.5:
        raise Refused(f"--rarer must be above 0 and at most 0.5, got {rarer:g}.")
    if model == ADDITIVE:
        if len(budgets) > 1 or len(sizes) > 1 or share or evaluate:
            raise Refused(
                "--model additive is planned for one --epsilon and one --rows, without "
                "--inference and --evaluate; leave the others out."
            )
        _plan_additive(sizes[0], budgets[0], delta, schema, target, unit, relation, as_json)
        return
    with before_records():
        kind, n_features, facts, ranges = _shape(
            schema, target, unit, model, columns, classes, label_range, row_norm, bool(share)
        )
        if facts.pop("by_person"):
            if relation == "replace":
                raise Refused(
                    "--relation replace makes the number of records public, and a person (--unit) "
                    "has any number of records; leave --relation out."
                )
            relation = "add_remove_person"
        public = public_rows or relation == "replace"
        weights = class_weight_of(class_weight, facts.get("classes", []))
        of_network = kind.word in NETWORKS
        records = []
        for size, budget in itertools.product(sizes, budgets):
            if public:
                facts["n_records"] = size
            trained = max(round((1 - evaluate) * size), 1)
            estimator = make_estimator(
                kind,
                budget,
                delta,
                mechanism=mechanism,
                relation=relation,
                quantile=quantile,
                class_weight=weights,
                inference=share,
                **facts,
            )
            table = _typical_table(ranges, facts["row_norm"], n_features, rarer)
            made = _planned(estimator, n_features, size, trained, table)
            record = _known(kind.word, made, size, n_features)
            if not of_network:
                alone = len(sizes) * len(budgets) == 1
                record = _record(record, estimator, made, size, gap, alone)
            if share:
                found = made.expected_errors(trained, table)
                record["inference"] = _inference(found, estimator.inference)
            if evaluate:
                record["evaluation"] = _evaluation(made, kind, facts, size, evaluate, rarer)
            records.append(record)
    warn_if_weak(max(budgets), delta, max(sizes))
    if as_json:
        output.document(records[0] if len(records) == 1 else {"plans": records})
    elif of_network:
        output.say(str(made))
        output.note("The accuracy of a network cannot be predicted from public facts.")
    else:
        if len(records) == 1:
            _show(records[0])
            output.say()
        if len(records) > 1 or share or evaluate:
            _show_table(records)


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
    with_references: bool,
) -> tuple[Any, int, dict[str, Any], Ranges | None]:
    """Return the model, the number of features, other public facts, and features' ranges."""
    from tacit.cli.fit import read_schema
    from tacit.cli.models import kind_for, model_kind
    from tacit.registry import Predicts

    if (schema is None) == (columns is None):
        raise Refused("give the number of features, with either --columns or --schema.")
    if schema is not None:
        declared = read_schema(schema, target, unit)
        declared = declared.with_references() if with_references else declared
        facts = declared.facts.parameters()
        facts["by_person"] = declared.unit is not None
        if row_norm is not None:
            facts["row_norm"] = row_norm
        ranges = [column.ranges() for column in declared.columns]
        return kind_for(declared, model), len(declared.feature_names), facts, ranges
    assert columns is not None
    kind = model_kind(model or "logistic")
    facts = {"n_records": None, "row_norm": math.sqrt(columns) if row_norm is None else row_norm}
    facts["by_person"] = unit is not None
    if kind.predicts is Predicts.NUMBERS:
        return kind, columns, {**facts, "label_range": label_range}, None
    if classes < 2 or (kind.two_classes and classes != 2):
        raise Refused(f"--classes {classes}: svc takes two classes, logistic two or more.")
    return kind, columns, {**facts, "classes": list(range(classes))}, None


def _whole_numbers(option: str, text: str) -> list[int]:
    found = opt.numbers_of(option, text)
    if not all(number.is_integer() and abs(number) <= _MOST_ROWS for number in found):
        raise Refused(f"{option} {text!r} is not a whole number; pass one such as 30000.")
    return [int(number) for number in found]


def _typical_table(
    ranges: Ranges | None, row_norm: float, n_features: int, rarer: float | None
) -> Any:
    """Return the table that predictions assume: of the schema's ranges, or of the row norm."""
    from tacit.erm.expected_errors import TYPICAL_RARER, TypicalTable

    rarer = TYPICAL_RARER if rarer is None else rarer
    if ranges is None:
        return TypicalTable.of_rows(row_norm, n_features, rarer)
    return TypicalTable.of_columns(ranges, rarer)


def _planned(estimator: Any, n_features: int, rows: int, trained: int, table: Any) -> Any:
    """Return the plan; "auto" becomes the share that is best for this table and these rows."""
    if getattr(estimator, "inference", 0.0) == "auto":
        from tacit.erm.expected_errors import best_of_shares

        def plan_at(share: float) -> Any:
            return estimator.set_params(inference=share).plan(n_features, rows)

        estimator.set_params(inference=best_of_shares(plan_at, trained, table))
    return estimator.plan(n_features, rows)


def _inference(found: Any, share: float) -> dict[str, Any]:
    """Return the entries on standard errors of a plan."""
    return {
        "share": share,
        "records": found.n_records,
        "sampling_error": found.sampling_error,
        "standard_error": found.standard_error,
        "largest_standard_error": float(found.total.max()),
        "ratio": found.ratio,
        "verdict": found.verdict,
    }


def _evaluation(
    made: Any, kind: Any, facts: dict[str, Any], rows: int, share: float, rarer: float | None
) -> dict[str, Any]:
    """Return whether an evaluation of held-out records will tell an AUC, and what it needs."""
    from tacit.erm.expected_errors import TYPICAL_RARER
    from tacit.metrics import TooFewRecords
    from tacit.metrics.planning import evaluation_plan, least_of_each_class
    from tacit.registry import Predicts

    held_out = max(round(share * rows), 1)
    if kind.predicts is not Predicts.CLASSES:
        return {"records": held_out, "auc": None}
    classes = facts["classes"]
    public = None if facts.get("n_records") is None else held_out
    expected = held_out * (rarer or TYPICAL_RARER) * 2 / len(classes)
    try:
        planned = evaluation_plan(made.budget, classes=classes, n_records=public)
    except TooFewRecords:
        planned = evaluation_plan(made.budget, classes=classes)
    least = least_of_each_class(planned)
    needed = _rounded_up(math.ceil(rows * least / max(expected, 1e-9)))
    return {
        "records": held_out,
        "auc": expected >= least,
        "least_of_each_class": least,
        "expected_of_rarer_class": expected,
        "rows_for_auc": needed,
    }


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
    known: dict[str, Any], estimator: Any, made: Any, rows: int, gap: float | None, alone: bool
) -> dict[str, Any]:
    """Return the entries on the gap; rows needed and other mechanisms if it stands alone."""
    from tacit.report.wording import mechanisms_for

    public = estimator.n_records is not None
    objective = made.problem.objective
    guess = objective.loss.guess(objective.bounds)
    shown = {
        **known,
        "rows_are_public": public,
        "row_norm": objective.bounds.row_norm,
        "gap": made.excess_risk,
        "loss_of_guessing": guess,
    }
    if not alone:
        return shown
    wanted = gap if gap is not None else _WANTED_SHARE * guess
    n_features = made.problem.n_features

    def gap_at(n: int) -> float:
        if estimator.n_records is not None:
            estimator.set_params(n_records=n)
        risk: float = estimator.plan(n_features, n).excess_risk
        return risk

    needed = rows_for(wanted, gap_at, rows)
    if public:
        estimator.set_params(n_records=rows)
    return {
        **shown,
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


def _show_table(records: list[dict[str, Any]]) -> None:
    """Print one line per budget and number of rows."""
    with_errors, with_auc = "inference" in records[0], "evaluation" in records[0]
    header = ["epsilon", "rows", "gap"]
    header += ["share", "sampling error", "standard error", "largest", "verdict"] * with_errors
    header += ["AUC"] * with_auc
    lines = []
    for record in records:
        line = [f"{record['epsilon']:g}", f"{record['rows']:,}", f"{record['gap']:.2g}"]
        if with_errors:
            found = record["inference"]
            names = ("sampling_error", "standard_error", "largest_standard_error")
            line += [f"{found['share']:g}", *(f"{found[name]:.2g}" for name in names)]
            line.append(found["verdict"])
        if with_auc:
            line.append(_auc_in_words(record["evaluation"]))
        lines.append(line)
    title = "Predicted errors of standardised coefficients" if with_errors else "Predicted gaps"
    output.table(title, header, lines, texts=0)
    if with_errors:
        output.note(
            "A standard error is that of the median term; times 1.96 it is half an interval."
        )


def _auc_in_words(found: dict[str, Any]) -> str:
    if found["auc"] is None:
        return "not for numbers"
    return "yes" if found["auc"] else f"no, from {found['rows_for_auc']:,} rows"
