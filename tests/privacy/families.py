"""One-parameter families of every kind of event; a new event adds a line and is tested."""

from __future__ import annotations

from collections.abc import Callable

from tacit.privacy import (
    BestOf,
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    NoisyMajority,
    OneOf,
    Parallel,
    PureEpsilon,
    PureObjective,
    RareLeak,
    Relation,
    Repeated,
    SampledGaussian,
    SmoothGaussian,
    SoftmaxObjective,
    ZeroConcentrated,
)
from tacit.privacy.accounting.number_of_trials import Capped, TruncatedNegativeBinomial

REPLACE = Relation.REPLACE
STIFF = 1e7  # regularization at which a Jacobian costs nothing worth mentioning

FAMILIES: dict[str, Callable[[float], Event]] = {
    "gaussian": Gaussian,
    "gaussian_replace": lambda z: Gaussian(z, REPLACE),
    "sampled_gaussian": lambda z: SampledGaussian(z, 0.2),
    "pure": lambda z: PureEpsilon(1 / z),
    "exponential": lambda z: ExponentialMechanism(1 / z),
    "zero_concentrated": lambda z: ZeroConcentrated(1 / (2 * z * z)),
    "logistic": lambda z: LogisticObjective(1.0, STIFF, z),
    "logistic_weak_ridge": lambda z: LogisticObjective(1.0, 1e4, z),
    "logistic_replace": lambda z: LogisticObjective(1.0, STIFF, z, REPLACE),
    "monotone": lambda z: MonotoneObjective(1.0, 0.5, STIFF, z),
    "monotone_replace": lambda z: MonotoneObjective(1.0, 0.5, STIFF, z, REPLACE),
    "linear_model": lambda z: LinearModelObjective(1.0, 1.0, STIFF, z),
    "log_cosh": lambda z: LogCoshObjective(1.0, 1.0, STIFF, z),
    "log_cosh_weak_ridge": lambda z: LogCoshObjective(1.0, 1.0, 1e4, z),
    "noisy_majority": NoisyMajority,
    "smooth_gaussian": lambda z: SmoothGaussian(z, 1e-3 / z),
    "softmax": lambda z: SoftmaxObjective(1.0, 10, STIFF, z),
    "pure_objective": lambda z: PureObjective(1.0, 0.25, STIFF, z),
    "pure_objective_replace": lambda z: PureObjective(1.0, 0.25, STIFF, z, 1, REPLACE),
    "repeated": lambda z: Repeated(Gaussian(z), 10),
    "parallel": lambda z: Parallel((Gaussian(2 * z), Repeated(Gaussian(3 * z), 4))),
    "parallel_mixed": lambda z: Parallel((PureEpsilon(1 / z), Gaussian(z))),
    "parallel_objective": lambda z: Parallel(
        (Composed((LogisticObjective(1.0, 1e4, z), Gaussian(20 * z))), Gaussian(2 * z))
    ),
    "parallel_pure": lambda z: Parallel((PureEpsilon(1 / z), ExponentialMechanism(2 / z))),
    "leaky": lambda z: Composed((Gaussian(z), RareLeak(1e-13))),
    "leaky_mixed": lambda z: Composed((Gaussian(z), PureEpsilon(1 / z), RareLeak(1e-13))),
    "composed": lambda z: Composed((Gaussian(z), PureEpsilon(1 / z))),
    "one_of": lambda z: OneOf((Gaussian(z), Gaussian(2 * z))),
    "best_of": lambda z: BestOf(Gaussian(z), TruncatedNegativeBinomial(1.0, 0.2)),
    "best_of_pure": lambda z: BestOf(PureEpsilon(1 / z), TruncatedNegativeBinomial(0.0, 0.1)),
    "best_of_concentrated": lambda z: BestOf(
        ZeroConcentrated(1 / (2 * z * z)), Capped(TruncatedNegativeBinomial(1.0, 0.2), 9)
    ),
}

# families of which 20 budgets take more than a few seconds
HEAVY = ("best_of", "best_of_pure", "best_of_concentrated", "noisy_majority")

# families whose cost at delta = 0 is finite
PURE = (
    "pure",
    "best_of_pure",
    "parallel_pure",
    "exponential",
    "pure_objective",
    "pure_objective_replace",
)
