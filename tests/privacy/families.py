"""One-parameter families of every kind of event; a new event adds a line and is tested."""

from __future__ import annotations

from collections.abc import Callable

from tacit.privacy import (
    Composed,
    Event,
    ExponentialMechanism,
    Gaussian,
    LinearModelObjective,
    LogCoshObjective,
    LogisticObjective,
    MonotoneObjective,
    PureEpsilon,
    PureObjective,
    Relation,
    Repeated,
    SampledGaussian,
    SoftmaxObjective,
    ZeroConcentrated,
)

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
    "softmax": lambda z: SoftmaxObjective(1.0, 10, STIFF, z),
    "pure_objective": lambda z: PureObjective(1.0, 0.25, STIFF, z),
    "pure_objective_replace": lambda z: PureObjective(1.0, 0.25, STIFF, z, 1, REPLACE),
    "repeated": lambda z: Repeated(Gaussian(z), 10),
    "composed": lambda z: Composed((Gaussian(z), PureEpsilon(1 / z))),
}

# families whose cost at delta = 0 is finite
PURE = ("pure", "exponential", "pure_objective", "pure_objective_replace")
