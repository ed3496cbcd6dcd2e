"""Collect the facts of a report from a fitted model's public attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import __version__, engine
from tacit.additive.estimators import AdditiveModel
from tacit.erm import Plan
from tacit.erm.plan import NoiseError, unknown
from tacit.estimators.parameters import positive_class, positive_sign
from tacit.estimators.summary import remark_on_bias
from tacit.pipeline.private import as_pipeline, feature_names_of, summary_of
from tacit.privacy import Guarantee
from tacit.registry import MARGIN, spec_of
from tacit.report.facts import (
    AccuracyPicture,
    Coefficient,
    Coefficients,
    PlannedMechanism,
    Removed,
    ReportFacts,
    Shapes,
)
from tacit.report.wording import (
    about_predictions,
    alone,
    capital,
    mechanisms_for,
    public_facts,
    short,
)

Array = npt.NDArray[np.float64]

# Adding one number to all values of a category changes little but the intercept, so differences
# are estimated better than levels.
_ON_CATEGORIES = (
    " Differences between the values of one category are usually more certain than the values "
    "themselves."
)


def facts_of(
    model: Any,
    *,
    title: str | None = None,
    accuracy: AccuracyPicture | None = None,
    expected_records: int | None = None,
    made_on: str = "",
) -> ReportFacts:
    """Collect released results and public facts of a fitted model for a report.

    Parameters
    ----------
    model
        A fitted estimator of tacit, or a `PrivatePipeline`.
    title
        The title of the report; by default the kind of model.
    accuracy
        Scores on public data, if there are any.
    expected_records
        An approximate public number of records, for predictions alone.
    made_on
        A date to print.

    Notes
    -----
    **Guarantee**. The function reads only the model's constructor parameters and ``coef_``,
    ``intercept_``, ``location_``, ``classes_``, ``declared_classes_``, ``feature_names_in_``,
    ``n_features_in_``, ``residual_bound_``, ``estimates_``, ``standard_errors_``,
    ``evaluation_``, ``terms_``, ``plan_`` and ``privacy_``. The accountant and the random state are
    not read.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.report import facts_of
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> facts = facts_of(LogisticRegression(1.0, 1e-6, row_norm=2.0).fit(X, X[:, 0] > 0))
    >>> [row.name for row in facts.coefficients.rows]
    ['feature 1', 'feature 2', 'intercept']
    """
    model = as_pipeline(model)
    estimator = model.released_estimator() if hasattr(model, "released_estimator") else model
    encoder = getattr(model, "encoder_", None)
    schema = encoder.schema if encoder is not None else None
    if isinstance(estimator, AdditiveModel):  # it reads raw tables without an encoder
        schema = estimator.schema
    promise = getattr(estimator, "privacy_", None)
    if not isinstance(promise, Guarantee):
        raise TypeError(
            f"model must be a fitted estimator of tacit or a fitted TableModel, got "
            f"{type(estimator).__name__} without a guarantee in privacy_; call fit first."
        )
    planned = getattr(estimator, "plan_", None)
    plan = planned if isinstance(planned, Plan) else None
    names = _feature_names(model, estimator)
    as_declared = schema is not None and len(getattr(model, "steps_", ())) <= 2
    parameters = _requested_parameters(model, estimator)
    classes = estimator.classes_.tolist() if hasattr(estimator, "classes_") else None
    return ReportFacts(
        title=title or _title(estimator, schema),
        privacy=promise,
        schema=schema,
        public=tuple(public_facts(parameters, promise.relation, classes)),
        mechanisms=tuple(_mechanisms(estimator, planned, expected_records)),
        about_mechanisms=about_predictions(plan, expected_records) if plan else "",
        coefficients=_coefficients(estimator, plan, names, from_schema=as_declared),
        shapes=_shapes(estimator) if isinstance(estimator, AdditiveModel) else None,
        summary=summary_of(model),
        evaluation=getattr(model, "evaluation_", None),
        accuracy=accuracy,
        made_by=f"tacit {__version__}",
        made_on=made_on,
    )


def _shapes(model: AdditiveModel) -> Shapes:
    """Return the curves of an additive model, strongest first, and the columns without one."""
    plots = model.plots()
    intercept = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    levels = ", ".join(
        f"{short(float(level), 4)} ({score})"
        for level, score in zip(intercept, model.score_names(), strict=True)
    )
    meaning = (
        "A record's score is the intercept plus one term per column, read off at its own values. "
        f"Intercept: {levels}."
    )
    removed = tuple(
        Removed(name, max(map(float, term.ranges())))
        for name, term in model.terms_.items()
        if name not in plots
    )
    return Shapes(meaning, tuple(plots.values()), removed, not model.is_small_)


def _requested_parameters(model: Any, estimator: Any) -> Mapping[str, Any]:
    """Return the estimator's parameters, with the budget that was asked for all steps.

    A pipeline gives its estimator a part of the budget, which is a number that nobody asked for.
    """
    parameters: dict[str, Any] = estimator.get_params(deep=False)
    whole = None if model is estimator else getattr(model, "epsilon", None)
    part = parameters.get("epsilon")
    if whole is None or part == whole:
        return parameters
    requested = {"epsilon": whole, "delta": model.delta}
    return {**parameters, **requested, **({} if part is None else {"estimator_epsilon": part})}


def _title(estimator: Any, schema: Any) -> str:
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(estimator).__name__)
    plain = words.strip().replace("s v c", "SVC")
    of = f" of {schema.target.name}" if schema is not None and schema.target is not None else ""
    return capital(plain) + of


def _mechanisms(estimator: Any, plan: Any, expected: int | None) -> list[PlannedMechanism]:
    if isinstance(plan, Plan):
        return mechanisms_for(estimator, plan, expected)
    return [alone(plan)] if isinstance(plan, engine.Plan) else []


def _feature_names(model: Any, estimator: Any) -> list[str]:
    spec = spec_of(estimator)
    if spec is not None and spec.terms is not None:
        return list(spec.terms(estimator))
    names = feature_names_of(model)
    if names is not None:
        return list(names)
    return [f"feature {place + 1}" for place in range(int(estimator.n_features_in_))]


def _coefficients(
    estimator: Any, plan: Plan | None, names: list[str], from_schema: bool
) -> Coefficients | None:
    if hasattr(estimator, "coef_"):
        return _weights(estimator, plan, names, from_schema)
    if hasattr(estimator, "location_"):
        return _location(estimator, plan, names)
    return None


def _weights(
    estimator: Any, plan: Plan | None, names: list[str], from_schema: bool
) -> Coefficients:
    coef = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    intercept = np.atleast_1d(np.asarray(estimator.intercept_, dtype=np.float64))
    constant = plan.problem.objective.bounds.intercept if plan is not None else 0.0
    error = _noise_error(estimator, plan, _weight_norm(estimator, plan, coef, intercept))
    # Of two classes, coefficients are told for the last declared one.
    sign = positive_sign(estimator)
    coef, intercept = sign * coef + 0.0, sign * intercept + 0.0  # no -0.0
    outputs = [str(label) for label in estimator.classes_] if len(coef) > 1 else [""]
    rows: list[Coefficient] = []
    for output, line, level in zip(outputs, coef, intercept, strict=True):
        rows += [
            Coefficient(n, float(v), error.std, output) for n, v in zip(names, line, strict=True)
        ]
        if getattr(estimator, "fit_intercept", False):
            on_level = error.std * constant if error.std is not None and constant else None
            rows.append(Coefficient("intercept", float(level), on_level, output, True))
    about = error.sentence + (_ON_CATEGORIES if from_schema and error.is_bound else "")
    meaning, remark = _meaning(estimator, from_schema), remark_on_bias(estimator)
    return Coefficients(tuple(rows), meaning, about, error.is_bound, remark)


def _weight_norm(estimator: Any, plan: Plan | None, coef: Array, intercept: Array) -> float | None:
    """Return the norm of the released weights, intercept included, in the mechanism's units."""
    if plan is None:
        return None
    bounds = plan.problem.objective.bounds
    declared = getattr(estimator, "label_range", None)
    if bounds.label_range is None or isinstance(declared, str) or declared is None:
        return None
    # The fit centres the labels, so the released intercept excludes this shift.
    middle = float(declared[0]) - bounds.label_range[0]
    level = (intercept - middle) / bounds.intercept if bounds.intercept else np.zeros(1)
    return math.hypot(float(np.linalg.norm(coef)), float(np.linalg.norm(level)))


def _meaning(estimator: Any, from_schema: bool) -> str:
    spec = spec_of(estimator)
    link = spec.link if spec else MARGIN
    what = link.meaning(getattr(estimator, "classes_", None), positive_class(estimator))
    if from_schema and (spec is None or spec.terms is None):
        what += (
            " Features follow the schema: a number is scaled to -1/2 at its lower bound and 1/2 "
            "at its upper bound, no is -1/2 and yes 1/2. A category's value and an interval are 1 "
            "if the record has them, otherwise 0."
        )
    return what


def _location(estimator: Any, plan: Plan | None, names: list[str]) -> Coefficients:
    error = _noise_error(estimator, plan, None)
    values = np.asarray(estimator.location_, dtype=np.float64)
    rows = tuple(Coefficient(n, float(v), error.std) for n, v in zip(names, values, strict=True))
    return Coefficients(rows, _meaning(estimator, False), error.sentence, error.is_bound)


def _noise_error(estimator: Any, plan: Plan | None, weight_norm: float | None) -> NoiseError:
    spec = spec_of(estimator)
    if spec is not None and spec.noise_error is not None:
        return spec.noise_error(estimator)
    if plan is not None:
        return plan.noise_error(weight_norm)
    return unknown("the effect of noise on these numbers cannot be computed without the records.")
