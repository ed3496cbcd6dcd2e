"""Constructor parameters as facts in words; of a type not known here the name alone is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from tacit.privacy import Relation
from tacit.report.facts import PublicFact
from tacit.report.mechanisms import mechanism_title
from tacit.report.numbers import short

# Said elsewhere, of no interest, or not public.
_LEFT_OUT = {"accountant", "random_state", "verbose", "relation", "classes", "shuffle"}
_MOST_SHOWN = 24

_BESIDE_LOSSES = "its weight beside the sum of the losses of all records"
_NAMES: Mapping[str, tuple[str, str]] = {
    "epsilon": ("Epsilon asked for", "the most that may be spent"),
    "delta": ("Delta asked for", "the probability with which the promise may fail"),
    "row_norm": ("Largest norm of a record", "a longer row is scaled down to it"),
    "label_range": ("Range of the labels", "a label outside is moved to its edge"),
    "bounds": ("Range of each column", "a value outside is moved to its edge"),
    "center": ("Centre", "a public guess of where the records are"),
    "n_records": ("Number of records", ""),
    "mechanism": ("Mechanism asked for", ""),
    "fit_intercept": ("Intercept", ""),
    "regularization": ("Regularisation asked for", _BESIDE_LOSSES),
    "alpha": ("Regularisation asked for", _BESIDE_LOSSES),
    "constraint": ("Where weights may be", ""),
    "class_weight": ("Weights of the classes", "how much a record of each counts"),
    "max_weight": ("Largest weight of a record", "a greater weight counts as this"),
    "quantile": ("Quantile", ""),
    "knot": ("Residual from which the loss is linear", ""),
    "smoothing": ("Rounding of the loss", "how far from its corner the loss is made smooth"),
}
_NONE = {
    "n_records": "private, not used",
    "regularization": "chosen from public facts",
    "alpha": "chosen from public facts",
    "constraint": "anywhere",
    "knot": "chosen from the range of the labels",
    "smoothing": "chosen from the range of the labels",
    "center": "0",
    "row_norm": "1, not declared",
    "class_weight": "none: all classes count alike",
    "max_weight": "none: all records count alike",
}
_INFERRED = "read off the data"
_INFERABLE = {"n_records", "label_range"}
_RANGES = {"label_range", "bounds"}


def public_facts(
    parameters: Mapping[str, Any], relation: Relation, classes: Sequence[Any] | None
) -> list[PublicFact]:
    """Return an estimator's parameters, each with what it means.

    Examples
    --------
    >>> from tacit.privacy import Relation
    >>> from tacit.report.parameters import public_facts
    >>> facts = public_facts({"row_norm": 2.0, "random_state": 3}, Relation.ADD_REMOVE, None)
    >>> [fact.name for fact in facts]
    ['Neighbouring data sets', 'Largest norm of a record']
    """
    first = PublicFact("Neighbouring data sets", "differ by " + relation.sentence)
    facts = [first]
    if classes is not None:
        inferred = parameters.get("classes") == "infer"
        remark = _INFERRED if inferred else "records of no class do not count"
        facts.append(
            PublicFact("Classes", _text("classes", [str(label) for label in classes]), remark)
        )
    order = {name: place for place, name in enumerate(_NAMES)}
    for name in sorted(parameters, key=lambda name: (order.get(name, len(order)), name)):
        if name not in _LEFT_OUT:
            title, remark = _NAMES.get(name, (_plain(name), ""))
            value = parameters[name]
            facts.append(PublicFact(title, _text(name, value), "" if value is None else remark))
    return facts


def _plain(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


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
    # An object's own text could say anything: its type says enough.
    return _plain(type(value).__name__)


def _mechanism(value: Any) -> str:
    name = value if isinstance(value, str) else getattr(value, "name", type(value).__name__)
    return "the one with the least predicted cost" if name == "auto" else mechanism_title(str(name))
