"""Release the geometric median of records in a ball, by noisy gradient descent."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from tacit.engine import Plan, without_noise
from tacit.erm import L2Ball, Mechanism, Objective, Problem, choose_plan, minimize_unread
from tacit.erm import Plan as ErmPlan
from tacit.erm.losses import DistanceLoss
from tacit.erm.planning.planner import MechanismName
from tacit.estimators.linear import gives_one_each, when_paid_for
from tacit.estimators.parameters import (
    assumptions_of,
    budget_of,
    check_shape,
    n_records_of,
    source_of,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.estimators.tables import note_columns
from tacit.location.mean import Array, ball_of, centre_of
from tacit.privacy import AnyAccountant, Relation
from tacit.records import Bounds
from tacit.records.lazy_table import has_people, shown_rows


class GeometricMedian(BaseEstimator):
    """The point with the least total distance to the records, robust in any dimension.

    Records are clipped to a ball around a public centre. Noisy gradient descent minimises the sum
    of distances within that ball.

    Parameters
    ----------
    row_norm : float or None
        Records farther than this from ``center`` are moved onto the ball. None is 1.0, with an
        `UndeclaredWarning`.
    center : array or None
        A public guess; 0 by default.
    epsilon, delta, relation, n_records, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.location import GeometricMedian
    >>> X = np.random.default_rng(0).normal([1.0, -1.0], 0.5, (10_000, 2))
    >>> GeometricMedian(1.0, 1e-6, row_norm=4.0).fit(X).location_.round(0)
    array([ 1., -1.])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        center: Any = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "noisy_gradient",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.row_norm = row_norm
        self.center = center
        self.n_records = n_records
        self.mechanism = mechanism
        self.accountant = accountant
        self.random_state = random_state

    def plan(self, n_features: int, n_records: int | None = None) -> ErmPlan | Plan:
        """Return the plan of a fit, with its cost and predicted risk, without data."""
        check_shape(n_features, n_records)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        if budget.is_infinite:
            return without_noise(budget)
        public = n_records_of(self.n_records, n_records, budget.relation)
        warn_if_weak(budget, public.value or n_records)
        objective = _within(ball_of(self.row_norm), public.value)
        problem = Problem(objective, n_features, n_records)
        return choose_plan(problem, budget, self.mechanism)

    def fit(self, X: Any, y: Any = None, unit: Any = None) -> Self:
        """Release the geometric median of the rows of ``X``, or of a `RecordSource`.

        ``unit`` names the person of each row, as in `tacit.linear_model.LogisticRegression`.
        """
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        resolved = with_table_facts(self, X)
        radius = ball_of(resolved.row_norm)
        table, names = note_columns(self, X, unit=unit, sparse=False)
        budget = with_people(budget, has_people(table))
        n_records = n_records_of(resolved.n_records, shown_rows(table), budget.relation)
        centre = centre_of(self.center, table)
        objective = _within(radius, n_records.value)
        warn_if_weak(budget, n_records.value)

        def centred(rows: Any, *_: Any) -> tuple[Array, None, None]:
            return np.asarray(rows, dtype=np.float64) - centre, None, None

        result = minimize_unread(
            when_paid_for(table, centred, objective.bounds),
            Problem(objective, table.n_columns, one_each=gives_one_each(table)),
            budget,
            self.mechanism,
            accountant=self.accountant,
            source=source_of(self.random_state),
            assumptions=assumptions_of(n_records, names),
        )
        self.location_ = centre + result.weights
        self.privacy_ = result.privacy
        self.plan_ = result.plan
        return self


def _within(radius: float, n_records: int | None) -> Objective:
    """Return the objective: the sum of distances, within a ball."""
    bounds = Bounds(row_norm=radius, n_records=n_records)
    return Objective(DistanceLoss(), bounds, 0.0, L2Ball(radius))
