"""Where a tilted minimum cannot be certified, its budget is spent on noisy gradients.

So many records that rounding alone may move a sum further than a certificate allows know the rows'
second moment well, and noise is small: steps in its coordinates, which need no certificate, do
better there than a tilt in the rows' own coordinates. Which of the two is decided by the released
count and moment; both cost no more than the plan, whose event is charged as it is
(docs/proofs/objective_perturbation.md, section 15).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.erm.noisy_gradient import descend_there
from tacit.erm.plan import Plan, gaussian_receipt
from tacit.erm.preconditioner import Turned
from tacit.erm.tilts import GaussianTilt, Tilt
from tacit.noise import Source
from tacit.privacy import Relation
from tacit.records import RecordSource

Array = npt.NDArray[np.float64]


def may_descend(plan: Plan, tilt: Tilt) -> bool:
    """Return whether the proof covers it: Gaussian noise, one record more or less, no weights."""
    return (
        isinstance(tilt, GaussianTilt)
        and plan.budget.relation is Relation.ADD_REMOVE
        and plan.problem.objective.bounds.max_weight is None
    )


def descended(
    plan: Plan, tilt: Tilt, turned: Turned, records: RecordSource, n_records: float, source: Source
) -> Array:
    """Return weights from steps that cost no more than the tilt would have.

    Raises
    ------
    RuntimeError
        If they cost more.
    """
    assert isinstance(tilt, GaussianTilt), "as may_descend asks"
    objective = plan.problem.objective
    allowed = tilt.gaussian_part(objective, plan.budget)
    open_ridge = replace(plan.problem, objective=replace(objective, regularization=None))
    mu = (1 - 2.0**-40) / allowed.noise_multiplier
    weights, events = descend_there(open_ridge, plan.budget, records, turned, n_records, mu, source)
    gaussian_receipt(events, allowed)
    return weights
