"""Take noisy gradient steps in place of the perturbed minimiser, at no higher cost.

Two fallbacks spend the same budget on preconditioned gradient descent:

1. With very many records, float error exceeds the certification tolerance. The second moment is
   then known accurately and the noise is small, so preconditioned steps, which need no
   certificate, do better than a perturbation in the original coordinates.
2. The plan asks for no second moment, because the typical number of records is too small, and the
   noisy count turns out large enough. No public fact says how ill-conditioned a table is; the
   moment costs a tenth of the noise's variance, and saves up to nine tenths of the risk.

Only releases and public facts decide. The descent costs no more than the plan, whose event is
charged unchanged (docs/proofs/objective_perturbation.md, section 15).
"""

from __future__ import annotations

from dataclasses import replace

from tacit.arrays import Array
from tacit.erm.mechanisms.noisy_gradient import descend_preconditioned
from tacit.erm.mechanisms.objective_perturbation.adapt import may_precondition
from tacit.erm.mechanisms.objective_perturbation.perturbation import (
    PerturbationSettings,
    perturbation_of,
)
from tacit.erm.plan import Plan
from tacit.erm.preconditioning import Preconditioner, SecondMoment
from tacit.privacy import Gaussian
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, Session, Slot
from tacit.queries.noise import gaussian_rest

# NoisyGradient's default share (9 % of mu^2); objective perturbation uses 5 %.
_MOMENT = SecondMoment()


def steps_instead(
    plan: Plan, facts: Facts, n_records: float, *, can_be_certified: bool
) -> Slot | None:
    """Return the slot of the gradient steps if they replace the minimiser, else None.

    ``can_be_certified`` is whether a minimum in preconditioned coordinates can be; True if the
    coordinates are not preconditioned.
    """
    slot = plan.slots().get("steps")
    if slot is None or facts.bounds.max_weight is not None:
        return None  # the proof does not cover records weighted after planning
    if not can_be_certified:
        return slot
    perturbation = perturbation_of(plan)
    if not perturbation.count_noise or plan.problem.declared_ridge:
        return None
    return slot if may_ask(plan, slot, perturbation, n_records) else None


def may_ask(plan: Plan, slot: Slot, perturbation: PerturbationSettings, n_records: float) -> bool:
    """Return whether an unplanned second moment is worth a share of the perturbation's budget.

    For isotropic rows the moment must exceed its noise: the unpreconditioned directions have no
    perturbation either. The steps must keep half of the mu^2 of one Gaussian release within the
    budget. This fails if the perturbation pays much for the effect of a record on the curvature.
    """
    problem, budget = plan.problem, plan.budget
    if perturbation.moment_noise:
        return False
    return (
        may_precondition(problem, budget, n_records)
        and _MOMENT.pays(problem, budget, n_records)
        and _left(plan, slot) >= 0.5 / gaussian_multiplier(budget) ** 2
    )


def _whole(slot: Slot) -> GaussianNoise:
    """Return the noise of the one release that replaces minimiser and trace."""
    assert isinstance(slot.event, Gaussian), "as `exchanged` makes it"
    return GaussianNoise(slot.event.noise_multiplier)


def _left(plan: Plan, slot: Slot) -> float:
    """Return the mu^2 that remains after the moment; below 0 if the moment costs more."""
    return _whole(slot).multiplier ** -2 - _MOMENT.noise_multiplier(plan.budget) ** -2


def descend_instead(
    plan: Plan,
    slot: Slot,
    session: Session,
    preconditioner: Preconditioner | None,
    n_records: float,
) -> tuple[Array, float]:
    """Return weights from gradient steps in place of the perturbation, at no higher cost.

    The second value is the bound on the derivative of the loss.

    If the second moment has not been released, it is queried here within the same cost.
    """
    problem, left = plan.problem, _whole(slot)
    if preconditioner is None:
        preconditioner = _MOMENT.ask(session, "steps", problem, plan.budget, n_records)
        left = gaussian_rest(left, [GaussianNoise(_MOMENT.noise_multiplier(plan.budget))])
    open_ridge = replace(problem, objective=replace(problem.objective, regularization=None))
    return descend_preconditioned(
        open_ridge, plan.budget, session, "steps", preconditioner, n_records, left
    )
