"""Recover the noise of objective perturbation from its result and the records.

The released w is the minimiser of sum of losses + (lam/2)||w||^2 + <b, w>, so

    b_D(w) = -(sum over D of gradients at w + lam w)

is the noise itself if the records were D. If one more record was in the data, it is the noise minus
the gradient of that record. These are two Gaussians, and the event bounds their distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.erm import Plan
from tacit.erm.objective import records_gradient
from tacit.erm.tilts import GaussianTilt, tilt_in
from tacit.records import MemoryRecords

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Inversion:
    """The recovered noise of a released vector along the gradient of one record.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.audit.inversion import Inversion
    >>> from tacit.erm.engine import run_plan
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.records import MemoryRecords
    >>> model = LogisticRegression(
    ...     1.0, 1e-5, row_norm=1.0, classes=[0, 1], regularization=1.0, fit_intercept=False
    ... )
    >>> plan = model.plan(n_features=2)
    >>> rows, labels = np.ones((50, 2)) / 2, -np.ones(50)
    >>> known = MemoryRecords(rows, labels, plan.problem.objective.bounds)
    >>> score = Inversion(plan, known, np.array([-0.5, -0.5]))
    >>> abs(score(run_plan(plan, known).value)) < 10.0
    True
    """

    plan: Plan
    known: MemoryRecords
    along: Array

    def __call__(self, weights: Array) -> float:
        """Return the noise along the record's gradient, in units of its standard deviation."""
        # <b, g> / (s ||g||)
        inner = float(np.vdot(self.noise(weights), self.along))
        return inner / (self._tilt.noise_std * float(np.linalg.norm(self.along)))

    def noise(self, weights: Array) -> Array:
        """Return b_D(w)."""
        objective = self.plan.problem.objective
        gradient = records_gradient(objective, self.known, weights)
        b: Array = -(gradient + self._tilt.regularization * weights)
        return b

    def aside(self, weights: Array) -> Array:
        """Return the noise orthogonal to the record's gradient, in the same units."""
        b: Array = self._others @ self.noise(weights) / self._tilt.noise_std
        return b

    @cached_property
    def _others(self) -> Array:
        # All rows but the first of an orthogonal matrix whose first row is the direction.
        turned, _ = np.linalg.qr(np.column_stack([self.along, np.eye(self.along.size)]))
        return np.asarray(turned.T[1:])

    @property
    def _tilt(self) -> GaussianTilt:
        tilt = tilt_in(self.plan)
        assert isinstance(tilt, GaussianTilt), "asked by can_invert"
        return tilt


def can_invert(plan: Plan) -> bool:
    """Return whether the released vector is a single minimiser, without other queries."""
    if not plan.mechanism.tilts:
        return False
    tilt = tilt_in(plan)
    if not isinstance(tilt, GaussianTilt) or tilt.row_scale != 1.0:
        return False
    asked = tilt.count_noise_multiplier, tilt.trace_noise_multiplier, tilt.moment_noise_multiplier
    return not (any(asked) or tilt.steadying)
