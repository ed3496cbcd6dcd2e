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

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tacit.erm.noisy_gradient import descend_there
from tacit.erm.plan import Plan
from tacit.erm.preconditioner import SecondMoment, Turned
from tacit.erm.tilts import Tilt
from tacit.erm.turning import may_turn
from tacit.privacy import Gaussian
from tacit.privacy.calibration import gaussian_multiplier
from tacit.queries import GaussianNoise, Session, Slot
from tacit.queries.split_budget import gaussian_rest

Array = npt.NDArray[np.float64]

# As noisy gradients ask for it; a tilt pays a twentieth.
_MOMENT = SecondMoment()


def may_ask(plan: Plan, slot: Slot, tilt: Tilt, n_records: float) -> bool:
    """Return whether a moment that was not planned is worth a share of the tilt's budget.

    An even table's must be above its noise, since what is then not turned has no tilt either; and
    steps must be left half of the mu^2 that one Gaussian release within the budget has, which a
    tilt that pays much for what a record does to the curvature does not leave.
    """
    problem, budget = plan.problem, plan.budget
    if tilt.moment_noise:
        return False
    return (
        may_turn(problem, budget, n_records)
        and _MOMENT.pays(problem, budget, n_records)
        and _left(plan, slot) >= 0.5 / gaussian_multiplier(budget) ** 2
    )


def _whole(slot: Slot) -> GaussianNoise:
    """Return the noise of the one release that minimiser and trace are exchanged for."""
    assert isinstance(slot.event, Gaussian), "as `exchanged` makes it"
    return GaussianNoise(slot.event.noise_multiplier)


def _left(plan: Plan, slot: Slot) -> float:
    """Return the mu^2 that a moment leaves of it, below 0 if it costs more."""
    return _whole(slot).multiplier ** -2 - _MOMENT.noise_multiplier(plan.budget) ** -2


def descended(
    plan: Plan, slot: Slot, session: Session, turned: Turned | None, n_records: float
) -> Array:
    """Return weights from steps in the place of the tilt, which cost no more than it would have.

    Where no second moment has been asked for it is now, and all of it together costs no more.
    """
    problem, left = plan.problem, _whole(slot)
    if turned is None:
        turned = _MOMENT.ask(session, "steps", problem, plan.budget, n_records)
        left = gaussian_rest(left, [GaussianNoise(_MOMENT.noise_multiplier(plan.budget))])
    open_ridge = replace(problem, objective=replace(problem.objective, regularization=None))
    return descend_there(open_ridge, plan.budget, session, "steps", turned, n_records, left)
