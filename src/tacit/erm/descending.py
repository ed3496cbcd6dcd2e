"""Where there are more records than a tilt was planned for, its budget goes to noisy gradients.

So many records that rounding alone may move a sum further than a certificate allows know the rows'
second moment well, and noise is small: steps in its coordinates, which need no certificate, do
better there than a tilt in the rows' own coordinates. So do steps where a plan, for the typical
number of records, asks for no moment, and the count says that it would be seen: how
ill-conditioned a table is no public fact tells, and a moment costs a tenth where it saves up to
all but a tenth. Releases and public facts decide; what is run costs no more than the plan, whose
event is charged as it is (docs/proofs/objective_perturbation.md, section 15).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.erm.noisy_gradient import descend_there
from tacit.erm.plan import Plan, gaussian_receipt
from tacit.erm.preconditioner import SecondMoment, Turned
from tacit.erm.tilts import GaussianTilt, Tilt
from tacit.erm.turning import may_turn
from tacit.noise import Source
from tacit.privacy import Event, Relation
from tacit.privacy.calibration import gaussian_multiplier
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]

# As noisy gradients ask for it; a tilt pays a twentieth.
_MOMENT = SecondMoment()


def may_descend(plan: Plan, tilt: Tilt, records: RecordSource) -> bool:
    """Return whether the proof covers it: Gaussian noise, one record more or less, no weights."""
    return (
        isinstance(tilt, GaussianTilt)
        and plan.budget.relation is Relation.ADD_REMOVE
        and plan.problem.objective.bounds.max_weight is None
        and records.bounds.max_weight is None
    )


def may_ask(plan: Plan, tilt: Tilt, records: RecordSource, n_records: float) -> bool:
    """Return whether a moment that was not planned is worth a share of the tilt's budget.

    An even table's must be above its noise, since what is then not turned has no tilt either; and
    steps must be left half of the mu^2 that one Gaussian release within the budget has, which a
    tilt that pays much for what a record does to the curvature does not leave.
    """
    problem, budget = plan.problem, plan.budget
    if tilt.moment(budget.relation) or not may_descend(plan, tilt, records):
        return False
    return (
        may_turn(problem, budget, n_records)
        and _MOMENT.pays(problem, budget, n_records)
        and _left(plan, tilt) >= 0.5 / gaussian_multiplier(budget) ** 2
    )


def _left(plan: Plan, tilt: Tilt) -> float:
    """Return the mu^2 that a moment leaves of the tilt's, below 0 if it costs more."""
    assert isinstance(tilt, GaussianTilt), "as may_descend asks"
    allowed = tilt.gaussian_part(plan.problem.objective, plan.budget)
    return 1 / allowed.noise_multiplier**2 - 1 / _MOMENT.noise_multiplier(plan.budget) ** 2


def descended(
    plan: Plan,
    tilt: Tilt,
    turned: Turned | None,
    records: RecordSource,
    n_records: float,
    source: Source,
) -> Array:
    """Return weights from steps that cost no more than the tilt would have.

    Where no second moment has been asked for it is now, and all of it together costs no more.

    Raises
    ------
    RuntimeError
        If they cost more.
    """
    assert isinstance(tilt, GaussianTilt), "as may_descend asks"
    objective, events = plan.problem.objective, list[Event]()
    allowed = tilt.gaussian_part(objective, plan.budget)
    left = 1 / allowed.noise_multiplier**2
    if turned is None:
        turned = _MOMENT.ask(plan.problem, records, plan.budget, n_records, source)
        events.append(turned.event)
        left = _left(plan, tilt)
    open_ridge = replace(plan.problem, objective=replace(objective, regularization=None))
    mu = (1 - 2.0**-40) * math.sqrt(left)
    weights, steps = descend_there(open_ridge, plan.budget, records, turned, n_records, mu, source)
    gaussian_receipt([*events, *steps], allowed)
    return weights
