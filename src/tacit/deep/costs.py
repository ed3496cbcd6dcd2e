"""What training costs, epoch by epoch, by several ways of counting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.privacy import Guarantee, Repeated, SampledGaussian
from tacit.privacy.routes import renyi_of

_MOST_MOMENT = 256
_SPLITS = 400  # of delta between the steps and their composition


@dataclass(frozen=True)
class EpochCost:
    """The epsilon of training up to the end of an epoch.

    ``epsilon`` is what is promised, from the distribution of the privacy loss. The others are for
    comparison: the moments accountant as it was published, and strong composition to first order,
    which was used before.
    """

    epoch: int
    n_steps: int
    epsilon: float
    moments: float
    strong_composition: float


def cost_after(step: SampledGaussian, n_steps: int, delta: float, epoch: int = 1) -> EpochCost:
    """Return what ``n_steps`` steps cost at a delta.

    Examples
    --------
    >>> from tacit.deep.costs import cost_after
    >>> from tacit.privacy import SampledGaussian
    >>> cost = cost_after(SampledGaussian(4.0, 0.01), 10_000, 1e-5)
    >>> [round(e, 3) for e in (cost.epsilon, cost.moments, cost.strong_composition)]
    [0.947, 1.259, 9.338]
    """
    return EpochCost(
        epoch,
        n_steps,
        Guarantee(Repeated(step, n_steps)).epsilon(delta),
        moments_epsilon(step, n_steps, delta),
        strong_composition_epsilon(step, n_steps, delta),
    )


def moments_epsilon(step: SampledGaussian, n_steps: int, delta: float) -> float:
    """Return epsilon by the moments accountant of Abadi et al. (2016).

        epsilon = min over whole l of (T alpha(l) + log(1 / delta)) / l,   alpha(l) = l r(l + 1)

    with r the Renyi divergence of a step; today's conversion from r is tighter.
    """
    moments = np.arange(1.0, _MOST_MOMENT + 1)
    alpha = moments * renyi_of(step, moments + 1)
    return float(np.min((n_steps * alpha + math.log(1 / delta)) / moments))


def strong_composition_epsilon(step: SampledGaussian, n_steps: int, delta: float) -> float:
    """Return epsilon by strong composition of amplified steps, to first order; no guarantee.

        e0 = sqrt(2 log(1.25 / d0)) / z,  e = q e0,  epsilon = e sqrt(2 T log(1 / d')) + T e^2

    with T q d0 + d' = delta shared out as well as can be.
    """
    rate, z = step.sampling_rate, step.noise_multiplier
    share = np.linspace(0.5, _SPLITS - 0.5, _SPLITS) / _SPLITS
    of_step, rest = share * delta / (n_steps * rate), (1 - share) * delta
    e = rate * np.sqrt(2 * np.log(1.25 / of_step)) / z
    return float(np.min(e * np.sqrt(2 * n_steps * np.log(1 / rest)) + n_steps * e**2))
