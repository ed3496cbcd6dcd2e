"""How large a record's part of a matrix may be counted: what that loses is asked for first.

Noise is for the largest part that a record may have, C R^2, and most have far smaller ones. What
would be left of the sum of the norms is released for thirteen limits at once, each 1/sqrt(2) of the
one before, and the least limit is taken that loses no more than noise would hide
(docs/proofs/inference.md, section 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.erm.matrices import Statistic, positive_sum
from tacit.erm.standard_errors import Total
from tacit.noise import Source
from tacit.privacy import Event, Gaussian
from tacit.records import Block, RecordSource
from tacit.records.summing import needs_fine_sums

Array = npt.NDArray[np.float64]

_FLOAT_SLACK = 1e-4
_SHARES = 2.0 ** (-np.arange(13) / 2)
# What may be lost in any case: intervals are wider by half of that.
_NEGLIGIBLE = 0.02


@dataclass(frozen=True, eq=False)
class Curve:
    """Noisy sums of min(norm, limit) over the records, and of c, with their noise."""

    limits: Array
    sums: Array
    std: float
    total: Total

    def limit(self, noise_multiplier: float, d: int) -> float:
        """Return the least limit that loses little, for a matrix of d columns.

            loss + its noise <= max(negligible, z limit sqrt(2 d) / (sum / 2 d))

        The second is what the norm of the noise will be beside half of an average eigenvalue. Going
        down it ends with the first limit that loses more.
        """
        whole = max(float(self.sums[0]), self.std)
        hidden = noise_multiplier * self.limits * math.sqrt(2 * d) * 2 * d / whole
        lost = 1 - self.sums / whole + self.std / whole
        lost[0] = 0.0
        bad = np.flatnonzero(lost > np.maximum(hidden, _NEGLIGIBLE))
        return float(self.limits[bad[0] - 1 if bad.size else -1])


def asked(
    statistic: Statistic, records: RecordSource, planned: Gaussian, source: Source
) -> tuple[Curve, Event]:
    """Return what limits leave of a statistic, and its total, in one release.

    A record adds (min(q, limit_0), min(q, limit_1), ..., R^2 c) with q its norm: all within C R^2
    times 1, 1/sqrt(2), ..., and C R^2. What the statistic does not have is left out.
    """
    limits = statistic.largest * _SHARES[: _SHARES.size * statistic.has_matrix]
    scale = statistic.row_norm**2 * statistic.has_total

    def of(block: Block) -> tuple[Array]:
        c, norms = statistic.sizes(block)
        kept = [np.minimum(norms, limit).sum() for limit in limits]
        return (np.array([*kept, scale * c.sum()]),)

    (vector,) = records.sum(of, fine=needs_fine_sums(records, _FLOAT_SLACK))
    length = math.hypot(float(np.linalg.norm(limits)), scale * statistic.greatest)
    noisy, std, event = positive_sum(vector, length, planned, source)
    total = Total(noisy[-1] / scale, std / scale) if scale else Total(0.0, 0.0)
    return Curve(limits, noisy[:-1], std, total), event
