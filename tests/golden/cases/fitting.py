"""What the cases of estimators share: an example, an estimator, a fit, its pins."""

from __future__ import annotations

from typing import Any

from tacit.erm import CannotSolve
from tests.declared import PROBLEMS, made
from tests.golden.pinning import SEED, Case, Pins, pinned, unheard

DELTA = 1e-5
RELATIONS = ("add_remove", "replace")


def fitted(
    problem: str, *, rows: Any = None, labels: Any = None, given: Any = None, **told: Any
) -> Case:
    """Return a case: an example's estimator, told more, fitted to its records or to others.

    ``given`` is what else `fit` is given. Where a mechanism does not apply, that is the case.
    """

    def case() -> Pins:
        spec, example = PROBLEMS[problem]
        X = example.rows if rows is None else rows(example)
        y = example.labels if labels is None else labels(example)
        more = {} if given is None else given(example)
        estimator = made(spec, example, **{"random_state": SEED, "delta": DELTA, **told})
        try:
            plan = None if spec.has_plan else planned(estimator, example.rows)
            estimator.fit(X, y, **more) if y is not None else estimator.fit(X, **more)
        except CannotSolve:
            return {"refused": True}
        return pinned(estimator, plan)

    return unheard(case) if problem.startswith("local_") else case


def planned(estimator: Any, rows: Any) -> Any:
    """Return the plan of an estimator that keeps none, if it can be asked for one."""
    n_records, n_features = rows.shape
    return estimator.plan(n_features, n_records) if hasattr(estimator, "plan") else None


def known_number(problem: str, relation: str, always: bool = False) -> dict[str, Any]:
    """Return what an estimator must be told of the number of records."""
    if relation == "add_remove" and not always:
        return {"relation": relation}
    return {"relation": relation, "n_records": len(PROBLEMS[problem][1].rows)}
