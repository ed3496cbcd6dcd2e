"""Models by name: the one place where the words of ``--model`` meet the estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tacit.cli.errors import Refused
from tacit.preprocessing import ClassTarget, Schema

ACCURACY, R2, D2 = "accuracy", "R2", "D2"


@dataclass(frozen=True)
class ModelKind:
    """A word, the estimator it stands for, and the score by which it is judged."""

    name: str
    estimator: str
    predicts_class: bool
    score: str


MODELS: dict[str, ModelKind] = {
    kind.name: kind
    for kind in (
        ModelKind("logistic", "LogisticRegression", True, ACCURACY),
        ModelKind("svc", "LinearSVC", True, ACCURACY),
        ModelKind("linear", "LinearRegression", False, R2),
        ModelKind("ridge", "Ridge", False, R2),
        ModelKind("huber", "HuberRegressor", False, R2),
        ModelKind("quantile", "QuantileRegressor", False, D2),
        ModelKind("poisson", "PoissonRegressor", False, D2),
    )
}


def model_kind(name: str) -> ModelKind:
    """Return the model of a name.

    Examples
    --------
    >>> from tacit.cli.models import model_kind
    >>> model_kind("svc").estimator
    'LinearSVC'
    """
    if name not in MODELS:
        raise Refused(f"--model {name!r} is unknown; choose from {', '.join(MODELS)}.")
    return MODELS[name]


def kind_for(schema: Schema, name: str | None) -> ModelKind:
    """Return the named model, or the usual one, if it fits what the schema says is predicted."""
    target = schema.target
    if target is None:
        raise Refused(
            "the schema does not say what is predicted; pass --target COLUMN, or declare it there "
            'with kind = "target".'
        )
    of_class = isinstance(target, ClassTarget)
    kind = model_kind(name or ("logistic" if of_class else "linear"))
    if kind.predicts_class != of_class:
        fitting = [other.name for other in MODELS.values() if other.predicts_class == of_class]
        raise Refused(
            f"--model {kind.name} does not predict {'classes' if of_class else 'numbers'}, which "
            f"is what the schema says of {target.name!r}; choose from {', '.join(fitting)}."
        )
    if isinstance(target, ClassTarget) and kind.name == "svc" and len(target.classes) != 2:
        raise Refused(
            f"--model svc knows two classes, and {target.name!r} has {len(target.classes)}; "
            "choose logistic."
        )
    return kind


def public_facts(schema: Schema) -> dict[str, Any]:
    """Return what an estimator must know beforehand, as the schema says it.

    Examples
    --------
    >>> from tacit.cli.models import public_facts
    >>> from tacit.preprocessing import ClassTarget, Number, Schema
    >>> public_facts(Schema((Number("age", 0, 100),), ClassTarget("ill", ("no", "yes"))))
    {'row_norm': 0.5, 'n_records': None, 'classes': ['no', 'yes']}
    """
    facts: dict[str, Any] = {"row_norm": schema.row_norm, "n_records": schema.n_records}
    target = schema.target
    if isinstance(target, ClassTarget):
        return {**facts, "classes": list(target.classes)}
    if target is not None:
        facts["label_range"] = (target.lower, target.upper)
    return facts


def make_estimator(
    kind: ModelKind,
    epsilon: float,
    delta: float,
    *,
    mechanism: str = "auto",
    relation: str = "add_remove",
    quantile: float | None = None,
    **facts: Any,
) -> Any:
    """Return an estimator that is not fitted yet.

    Examples
    --------
    >>> from tacit.cli.models import make_estimator, model_kind
    >>> make_estimator(model_kind("quantile"), 1.0, 1e-6, quantile=0.9).quantile
    0.9
    """
    from tacit import linear_model

    if epsilon <= 0.0:
        # The library's sentence names math.inf, which is no word of the command line.
        raise Refused(
            f"--epsilon must be above 0, got {epsilon:g}: zero epsilon means the output may not "
            "depend on the data at all; pass a positive number, such as 1 (tacit fit also takes "
            "inf, for no privacy)."
        )
    own = dict(facts)
    if quantile is not None:
        if kind.name != "quantile":
            raise Refused("--quantile is for --model quantile; leave it out, or choose that.")
        own["quantile"] = quantile
    cls = getattr(linear_model, kind.estimator)
    return cls(epsilon, delta, mechanism=mechanism, relation=relation, **own)
