"""Format numbers, parameters and mechanisms for a reader.

The plans of alternative mechanisms use only the public facts of the plan that ran.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from tacit import engine
from tacit.erm import CannotSolve, Plan
from tacit.erm.minimization import KINDS, MECHANISMS
from tacit.erm.plan import TYPICAL_N_RECORDS
from tacit.privacy import Relation
from tacit.report.facts import PlannedMechanism, PublicFact

MINUS = "\N{MINUS SIGN}"
NARROW = "\N{NARROW NO-BREAK SPACE}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float, digits: int = 4) -> str:
    """Format a number with a few significant digits.

    Examples
    --------
    >>> from tacit.report.wording import short
    >>> short(-0.0123456), short(32561), short(1e-6)
    ('−0.01235', '32,561', '10⁻⁶')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e7):
        return _scientific(value, digits)
    if float(value).is_integer() or size >= 10.0**digits:
        return f"{round(value):,}".replace("-", MINUS)
    return f"{value:,.{digits}g}".replace("-", MINUS)


def _scientific(value: float, digits: int) -> str:
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    number = float(mantissa)
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    if number == 1.0:
        return power
    return f"{number:g}".replace("-", MINUS) + f"{NARROW}\N{MULTIPLICATION SIGN}{NARROW}{power}"


def probability(value: float) -> str:
    """Format a probability; powers of ten are written as such.

    Examples
    --------
    >>> from tacit.report.wording import probability
    >>> probability(1e-4), probability(0.0), probability(2.5e-5).split()
    ('10⁻⁴', '0', ['2.5', '×', '10⁻⁵'])
    """
    if 0.0 < value < 0.1:
        return _scientific(value, 4)
    return short(value)


def rounded_up(value: float, digits: int = 4) -> str:
    """Format a cost with this many decimals, rounded up.

    Examples
    --------
    >>> from tacit.report.wording import rounded_up
    >>> rounded_up(0.99991), rounded_up(0.9999)
    ('1.0000', '0.9999')
    """
    if not math.isfinite(value):
        return short(value)
    unit = 10.0**-digits
    # Rounds as Guarantee.statement does, so that the page shows one epsilon.
    return f"{math.ceil(round(value / unit, 6)) * unit:.{digits}f}"


def rounded_down(value: float, digits: int = 4) -> str:
    """Format a remaining budget with this many decimals, rounded down.

    Examples
    --------
    >>> from tacit.report.wording import rounded_down
    >>> rounded_down(0.99999), rounded_down(0.9999)
    ('0.9999', '0.9999')
    """
    if not math.isfinite(value):
        return short(value)
    unit = 10.0**-digits
    return f"{math.floor(round(value / unit, 6)) * unit:.{digits}f}"


def aligned(values: list[float]) -> list[str]:
    """Format the numbers of one column with equally many decimals.

    Examples
    --------
    >>> from tacit.report.wording import aligned
    >>> aligned([1.23456, -12.0])
    ['1.23', '−12.00']
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    largest = max(sizes, default=1.0)
    if largest >= 1e7 or largest < 1e-6:
        return [short(value, 3) for value in values]
    decimals = min(max(3 - math.floor(math.log10(largest)), 0), 8)
    return [_fixed(value, decimals) for value in values]


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return short(value)
    text = f"{value:,.{decimals}f}"
    if float(text.replace(",", "")) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


# Shown elsewhere on the page, irrelevant to a reader, or not public.
_LEFT_OUT = {"schema", "accountant", "random_state", "verbose", "relation", "classes", "shuffle"}
_MOST_SHOWN = 24

_BESIDE_LOSSES = "weight relative to the sum of the losses of all records"
_NAMES: Mapping[str, tuple[str, str]] = {
    "epsilon": ("Requested epsilon", "the most that may be spent"),
    "estimator_epsilon": ("Epsilon of the estimator alone", "other steps were paid for too"),
    "delta": ("Requested delta", "the probability with which the guarantee may fail"),
    "row_norm": ("Row norm", "longer rows are scaled down to this norm"),
    "label_range": ("Label range", "labels outside are clipped"),
    "bounds": ("Range of each column", "values outside are clipped"),
    "center": ("Centre", "a public guess of the centre of the records"),
    "n_records": ("Number of records", ""),
    "max_bins": ("Most bins of a number", "beside its frequent values"),
    "passes": ("Passes", "how often each column is corrected at the current model"),
    "shares": ("Shares of the budget", "shares of mu^2 of the steps of the fit"),
    "allow_unconfirmed": ("Unconfirmed lines of the schema accepted", ""),
    "mechanism": ("Requested mechanism", ""),
    "fit_intercept": ("Intercept", ""),
    "regularization": ("Requested regularisation", _BESIDE_LOSSES),
    "alpha": ("Requested regularisation", _BESIDE_LOSSES),
    "constraint": ("Constraint on the weights", ""),
    "class_weight": ("Class weights", "the weight of a record of each class"),
    "max_weight": ("Largest record weight", "larger weights are clipped"),
    "quantile": ("Quantile", ""),
    "knot": ("Residual from which the loss is linear", ""),
    "smoothing": ("Smoothing of the loss", "distance from the corner within which it is smooth"),
}
_NONE = {
    "shares": "the default",
    "n_records": "private, not used",
    "regularization": "chosen from public facts",
    "alpha": "chosen from public facts",
    "constraint": "anywhere",
    "knot": "chosen from the range of the labels",
    "smoothing": "chosen from the range of the labels",
    "center": "0",
    "epsilon": "1, not declared",
    "row_norm": "1, not declared",
    "class_weight": "none: all classes have weight 1",
    "max_weight": "none: all records have weight 1",
}
_INFERRED = "inferred from the data"
_INFERABLE = {"n_records", "label_range"}
_RANGES = {"label_range", "bounds"}


def public_facts(
    parameters: Mapping[str, Any], relation: Relation, classes: Sequence[Any] | None
) -> list[PublicFact]:
    """Return an estimator's public parameters, each with its meaning.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.report.wording import public_facts
    >>> facts = public_facts({"row_norm": 2.0, "random_state": 3}, Relation.ADD_REMOVE, None)
    >>> [fact.name for fact in facts]
    ['Neighbouring data sets', 'Row norm']
    """
    first = PublicFact("Neighbouring data sets", "differ by " + relation.sentence)
    facts = [first]
    if classes is not None:
        inferred = parameters.get("classes") == "infer"
        remark = _INFERRED if inferred else "records of no declared class are ignored"
        facts.append(
            PublicFact("Classes", _text("classes", [str(label) for label in classes]), remark)
        )
    order = {name: place for place, name in enumerate(_NAMES)}
    for name in sorted(parameters, key=lambda name: (order.get(name, len(order)), name)):
        if name not in _LEFT_OUT:
            title, remark = _NAMES.get(name, (capital(name.replace("_", " ")), ""))
            value = parameters[name]
            facts.append(PublicFact(title, _text(name, value), "" if value is None else remark))
    return facts


def _text(name: str, value: Any) -> str:
    if value is None:
        return _NONE.get(name, "none")
    if name == "mechanism":
        return _mechanism(value)
    if name in _INFERABLE and isinstance(value, str):
        return _INFERRED if value == "infer" else value
    if name in _RANGES and isinstance(value, tuple | list) and len(value) == 2:
        return " to ".join(_text("", end) for end in value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if name == "estimator_epsilon":
        return rounded_up(float(value))
    if isinstance(value, int | float | np.integer | np.floating):
        return short(float(value), 6)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        value = [f"{key}: {_text('', number)}" for key, number in value.items()]
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        shown = ", ".join(_text("", item) for item in value[:_MOST_SHOWN])
        more = len(value) - _MOST_SHOWN
        return shown + (f", and {more:,} more" if more > 0 else "")
    # The repr of an arbitrary object is not under our control, so only its type is shown.
    return capital(type(value).__name__)


def _mechanism(value: Any) -> str:
    name = value if isinstance(value, str) else getattr(value, "name", type(value).__name__)
    return "least predicted cost (auto)" if name == "auto" else mechanism_title(str(name))


_TITLES = {kind.name: kind.title for kind in KINDS.values()}


def mechanism_title(name: str) -> str:
    """Return the display name of a mechanism.

    Examples
    --------
    >>> from tacit.report.wording import mechanism_title
    >>> mechanism_title("noisy_gradient"), mechanism_title("my_own")
    ('Noisy gradient descent', 'My own')
    """
    return _TITLES.get(name, capital(name.replace("_", " ")))


def planned(plan: Plan, chosen: bool) -> PlannedMechanism:
    """Describe a plan in words."""
    noise = plan.noise_in_words(lambda value: short(value, 3))
    settings = tuple((name, float(value)) for name, value in plan.settings.items())
    return PlannedMechanism(plan.mechanism.name, plan.excess_risk, noise, chosen, settings)


def alone(plan: engine.Plan) -> PlannedMechanism:
    """Describe a plan without alternatives, such as that of a network."""
    said = ". ".join(capital(text) for text in (plan.reason, *plan.notes))
    settings = tuple((name, float(value)) for name, value in plan.settings.items())
    return PlannedMechanism(plan.name, None, f"{said}.", chosen=True, settings=settings)


def mechanisms_for(estimator: Any, plan: Plan, expected: int | None) -> list[PlannedMechanism]:
    """Return the plan that was run and one plan per other mechanism, best first.

    Contract: only the estimator's parameters and the public facts in the plan are read.
    """
    if not hasattr(estimator, "plan"):
        return [planned(plan, chosen=True)]
    run = _comparable(estimator, plan, expected)
    others: list[PlannedMechanism] = []
    left = dict(MECHANISMS)
    left.pop(plan.mechanism.name, None)
    for name in left:
        try:
            others.append(planned(_plan_with(estimator, plan, name, expected), chosen=False))
        except (CannotSolve, ValueError) as why:
            others.append(PlannedMechanism(name, None, capital(str(why))))
    rows = [planned(run, chosen=True), *others]
    return sorted(rows, key=lambda row: (row.excess_risk is None, row.excess_risk or 0.0))


def _comparable(estimator: Any, plan: Plan, expected: int | None) -> Plan:
    """Return the plan that was run with its risk from before the fit, for a fair comparison."""
    try:
        before = _plan_with(estimator, plan, plan.mechanism, expected)
    except (CannotSolve, ValueError):
        return plan
    return before if expected is not None else replace(plan, excess_risk=before.excess_risk)


def _plan_with(estimator: Any, plan: Plan, mechanism: Any, expected: int | None) -> Plan:
    """Plan the estimator again with another mechanism.

    The estimator is cloned from its parameters, because a mechanism may choose its own
    regularization, and a regressor another loss.
    """
    bounds = plan.problem.objective.bounds
    facts = {
        "mechanism": mechanism,
        "accountant": None,
        "n_records": bounds.n_records,
        # Inferred values (classes, label range) are facts of the plan after the fit. A range
        # around zero stands for any range of the same width.
        "classes": None if bounds.n_classes is None else list(range(bounds.n_classes)),
        "label_range": bounds.label_range,
    }
    own = estimator.get_params(deep=False)
    if isinstance(own.get("class_weight"), Mapping):
        names = np.unique(getattr(estimator, "classes_", own["classes"])).tolist()
        places = {name: place for place, name in enumerate(names)}
        facts["class_weight"] = {places[name]: v for name, v in own["class_weight"].items()}
    anew = type(estimator)(**{**own, **{k: v for k, v in facts.items() if k in own}})
    found: Plan = anew.plan(plan.problem.n_features, expected)
    return found


def about_predictions(plan: Plan, expected: int | None) -> str:
    """State the assumptions of the predictions."""
    if plan.problem.objective.bounds.n_records is not None:
        return (
            f"Predicted for {plan.problem.objective.bounds.n_records:,} records, the public number."
        )
    if expected is not None:
        return f"Predicted for {expected:,} records, a number declared public."
    return (
        "The number of records is private, so the predictions assume "
        f"{TYPICAL_N_RECORDS:,} records; use them only to compare mechanisms."
    )


def capital(text: str) -> str:
    """Return a text that begins with a capital; other letters are unchanged."""
    return text[:1].upper() + text[1:]
