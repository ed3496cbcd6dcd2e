"""Objective perturbation of a loss that flattens as its slope saturates, such as log cosh."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from tacit import checks
from tacit.privacy.events.base import Array, Event
from tacit.privacy.gaussian_profile import gaussian_delta
from tacit.privacy.relation import Relation, checked_relation

_NOISE = "calibrate it to a Budget; without noise record NonPrivate(reason=...)."
_BOUND = "pass the bound enforced on every record."
_RIDGE = "objective perturbation needs strong convexity: pass a positive L2 regularization."


@dataclass(frozen=True)
class LogCoshObjective(Event):
    """A linear model whose loss is nowhere both steep and curved, b ~ N(0, noise_std^2 I).

    Contract: a record's gradient lies along its row and has length t ``lipschitz`` for a t in
    [-1, 1], and its Hessian has rank one and norm at most (1 - t^2) ``smoothness``.
    ``regularization`` is lam of the SUM form. ADD_REMOVE only.

    Guarantee (docs/proofs/objective_perturbation.md, section 12): with mu = lipschitz / noise_std
    and k = smoothness / lam, the privacy loss is at most

        X = max over t in [-1, 1] of t mu Z + t^2 mu^2 / 2 + (1 - t^2) k,   Z ~ N(0, 1)

    so that delta(epsilon) is twice the Gaussian mechanism's for epsilon >= 2 k - mu^2 / 2: what a
    record does to the curvature is free there.

    Examples
    --------
    >>> from tacit.privacy import Guarantee, LogCoshObjective
    >>> event = LogCoshObjective(1.0, 1.0, regularization=2.0, noise_std=3.8707)
    >>> round(Guarantee(event).epsilon(1e-5), 4)
    1.0
    """

    kind = "log_cosh_objective"

    lipschitz: float
    smoothness: float
    regularization: float
    noise_std: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        checks.positive("lipschitz", self.lipschitz, remedy=_BOUND)
        checks.positive("smoothness", self.smoothness, remedy=_BOUND)
        checks.positive("regularization", self.regularization, remedy=_RIDGE)
        checks.positive("noise_std", self.noise_std, remedy=_NOISE)
        if checked_relation(self.relation) is not Relation.ADD_REMOVE:
            raise ValueError(
                "LogCoshObjective is proved for Relation.ADD_REMOVE only; account under "
                "ADD_REMOVE, then convert the guarantee with replace_from_add_remove."
            )

    @property
    def _mu(self) -> float:
        return self.lipschitz / self.noise_std

    @property
    def _stretch(self) -> float:
        # k: how much one record can stretch the Jacobian
        return self.smoothness / self.regularization

    @property
    def _excess(self) -> float:
        # k - mu^2 / 2: what of it the quadratic of the noise does not give back
        return self._stretch - self._mu**2 / 2

    def profile(self, epsilon: Array) -> Array:
        """Return E(1 - exp(epsilon - X))_+.

        Where the excess e is positive, X = k + (mu Z)^2 / (4 e) while mu |Z| < 2 e, and
        mu |Z| + mu^2 / 2 beyond; otherwise it is the latter throughout.
        """
        mu, k, e = self._mu, self._stretch, self._excess
        corner = max(2 * e / mu, 0.0)  # |Z| from which X is linear in it
        free = max(k + e, mu**2 / 2)
        least = k if e > 0 else mu**2 / 2  # X is never less
        inner = np.clip(epsilon - least, 0.0, None)
        z = np.minimum(np.sqrt(4 * max(e, 0.0) * inner) / mu, corner)
        # E[exp(-X); |Z| > z] by its two pieces
        beyond = 2 * ndtr(-corner - mu)
        if e > 0:
            root = math.sqrt(1 + mu**2 / (2 * e))
            between = 2 * (ndtr(-z * root) - ndtr(-corner * root)) * math.exp(-k) / root
        else:
            between = np.zeros_like(epsilon)
        reached = np.where(epsilon < least, 1.0, 2 * ndtr(-z))
        with np.errstate(divide="ignore"):
            subtracted = np.exp(np.minimum(epsilon + np.log(between + beyond), 0.0))
        below = np.clip(reached - subtracted, 0.0, 1.0)
        above = np.minimum(2 * gaussian_delta(mu, np.maximum(epsilon, free)), 1.0)
        result: Array = np.where(epsilon >= free, above, below)
        return result

    def renyi(self, orders: Array) -> Array:
        """Return a bound on log E exp((a-1) X) / (a-1), X <= k + e where it is not linear in Z."""
        mu, e = self._mu, self._excess
        b, corner = orders - 1.0, max(2 * e / mu, 0.0)
        # E[exp(b X); |Z| > c] = 2 exp(b (b+1) mu^2 / 2) Phi(b mu - c)
        log_outer = math.log(2) + b * (b + 1) * mu**2 / 2 + log_ndtr(b * mu - corner)
        if e <= 0:
            result: Array = log_outer / b
            return result
        with np.errstate(divide="ignore"):
            log_inner = b * (self._stretch + e) + np.log1p(-2 * ndtr(-corner))
        result = np.logaddexp(log_outer, log_inner) / b
        return result
