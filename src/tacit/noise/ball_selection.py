"""Run the exponential mechanism on a fine public lattice of a ball, for concave utilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise.bounded import Bounded, Norm
from tacit.noise.cells import BallLattice, Cells
from tacit.noise.exact import (
    GUARD_BITS,
    Arithmetic,
    LazyUniform,
    ends,
    exponential_errors,
    exponentials,
    magnitude_bits,
    nearest_float,
)
from tacit.noise.generator import Source
from tacit.noise.release import Release, emit
from tacit.noise.selection import gumbel_max
from tacit.privacy.events import ExponentialMechanism
from tacit.privacy.relation import Relation, checked_relation

Array = npt.NDArray[np.float64]

# Boxes are halved until none has more than this share of the mass: 1 / 3^(dimension + 1).
_PER_AXIS = 3


@dataclass(frozen=True)
class Concave:
    """A concave utility of points, computed from records, and its sensitivity.

    Parameters
    ----------
    at : callable
        The utility of one point, as computed.
    tangents : callable
        For points, one a row, the utilities and their gradients, or any supergradients.
    error : float
        How far ``at`` may lie above a tangent plane by the rounding of both, between points at most
        four radii from 0.
    sensitivity : float
        The most that ``at`` moves between neighbours under ``relation``, at any point of the ball.
    relation : Relation
        Relation of the neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.noise import Concave
    >>> from tacit.privacy import Relation
    >>> rows = np.array([[0.5, 0.0], [0.5, 0.5]])
    >>> utility = Concave(
    ...     at=lambda w: -float(np.abs(rows @ w).sum()),
    ...     tangents=lambda points: (
    ...         -np.abs(points @ rows.T).sum(axis=1),
    ...         -np.sign(points @ rows.T) @ rows,
    ...     ),
    ...     error=1e-12,
    ...     sensitivity=1.0,
    ...     relation=Relation.ADD_REMOVE,
    ... )
    >>> utility.at(np.array([1.0, 0.0]))
    -1.0
    """

    at: Callable[[Array], float]
    tangents: Callable[[Array], tuple[Array, Array]]
    error: float
    sensitivity: float
    relation: Relation

    def __post_init__(self) -> None:
        checks.positive(
            "sensitivity",
            self.sensitivity,
            remedy="pass the most that one record can move the utility at any point of the ball.",
        )
        checks.at_least("error", self.error, 0.0)
        checked_relation(self.relation)

    def raised(self, points: Array) -> tuple[Array, Array]:
        """Return tangents raised by the error, so that no computed utility is above them."""
        value, slope = self.tangents(points)
        return np.nextafter(value + self.error, np.inf), slope


def select_in_ball(
    utility: Concave, lattice: BallLattice, epsilon: float, *, source: Source | None = None
) -> Release[Array]:
    """Choose a point of a ball with probability growing in a concave utility.

        P(x) proportional to exp(epsilon utility(x) / (2 sensitivity)),   x a point of the lattice

    The point is drawn by rejection. Boxes cover the ball, and each has a plane above the utility. A
    box is drawn by its mass under exp(plane), a point in it by exp(plane). The point is accepted
    with probability exp(utility - plane). After a rejection the box is halved and the draw is
    repeated.

    Parameters
    ----------
    utility : Concave
        The utility, which may be private.
    lattice : BallLattice
        The public candidates.
    epsilon : float
        The range of the privacy loss.
    source : Source, optional
        Source of random bits. By default a new `secure_source` for this release.

    Returns
    -------
    Release
        The chosen point, with ``ExponentialMechanism(epsilon)`` as event.

    Notes
    -----
    **Guarantee**

    1. The law of the point is exactly the one above, in real arithmetic, for the utility as
       computed; so the release is epsilon-bounded-range, hence epsilon-DP
       (docs/proofs/selection_in_a_ball.md).
    2. A utility above a plane is refused: it is not concave up to its stated error.
    3. Wrong arguments are refused before anything is drawn.

    **Assumes**: the sensitivity, concavity and the error; the bits of the source; NumPy's log,
    log1p and expm1 within 2^-44 relative; mpmath's interval exp and log. The running time depends
    on the utility, and so on the records.

    Examples
    --------
    The point nearest to 1,000 records that are all at (0.3, 0.4), by sums of distances.

    >>> import numpy as np
    >>> from tacit.noise import BallLattice, Concave
    >>> from tacit.noise.ball_selection import select_in_ball
    >>> from tacit.privacy import Relation
    >>> place = np.array([0.3, 0.4])
    >>> def distances(points):
    ...     return np.linalg.norm(points - place, axis=1)
    >>> utility = Concave(
    ...     at=lambda w: -1000.0 * float(distances(w[None])[0]),
    ...     tangents=lambda points: (
    ...         -1000.0 * distances(points),
    ...         -1000.0 * (points - place) / distances(points)[:, None],
    ...     ),
    ...     error=1e-9,
    ...     sensitivity=1.0,
    ...     relation=Relation.ADD_REMOVE,
    ... )
    >>> release = select_in_ball(utility, BallLattice(1.0, dimension=2), epsilon=2.0)
    >>> bool(np.linalg.norm(release.value - place) < 0.1)
    True
    """
    if not isinstance(utility, Concave):
        raise TypeError(f"utility must be a Concave, got {type(utility).__name__}.")
    if not isinstance(lattice, BallLattice):
        raise TypeError(
            f"lattice must be a BallLattice, got {lattice!r}; pass BallLattice(1.0, 2)."
        )
    rate = Fraction(checks.finite_epsilon(epsilon)) / Fraction(utility.sensitivity) / 2
    return emit(
        "select_in_ball",
        lambda: Bounded(
            np.array([utility.at(point) for point in _probes(lattice)]),
            utility.sensitivity,
            Norm.LINF,
            utility.relation,
        ),
        ExponentialMechanism(float(epsilon), utility.relation),
        source,
        lambda words: _draw(refined(utility, lattice, rate), utility, lattice, rate, words),
        public={"lattice": lattice},
    )


def _probes(lattice: BallLattice) -> Iterator[Array]:
    """Yield public points at which an audit compares utilities: towards faces, edges, corners."""
    for direction in product((-1.0, 0.0, 1.0), repeat=lattice.dimension):
        length = float(np.linalg.norm(direction))
        if length > 0.0:
            steps = np.trunc(np.array(direction) / length * lattice.radius / lattice.spacing)
            yield steps * lattice.spacing


def refined(utility: Concave, lattice: BallLattice, rate: Fraction) -> Cells:
    """Return boxes of which none has more than a small share of the mass."""
    factor = nearest_float(rate)
    cells = Cells.whole(lattice, utility.raised, factor)
    small = -np.log(_PER_AXIS) * (lattice.dimension + 1)
    while True:
        log_mass, _ = cells.log_masses(factor)
        top = log_mass.max()
        share = log_mass - top - np.log(np.exp(log_mass - top).sum())
        large = np.flatnonzero((share > small) & (cells.size.max(axis=1) > 1))
        if large.size == 0:
            return cells
        cells = cells.split(large, lattice, utility.raised, factor)


def _draw(
    cells: Cells, utility: Concave, lattice: BallLattice, rate: Fraction, source: Source
) -> Array:
    """Return a point: proposed under the planes, accepted by the utility."""
    factor = nearest_float(rate)
    while True:
        log_mass, error = cells.log_masses(factor)
        chosen = gumbel_max(log_mass, error, partial(cells.box, rate=rate), source)
        box = cells.box(chosen, rate)
        steps = box.draw(source)
        if lattice.contains(steps):
            point = np.float64(lattice.spacing) * steps
            if exceeds(box.log_weight(steps) - rate * _utility_at(utility, point), source):
                return point
        cells = cells.split(np.array([chosen]), lattice, utility.raised, factor)


def _utility_at(utility: Concave, point: Array) -> Fraction:
    value = float(utility.at(point))
    if not np.isfinite(value):
        raise ValueError("the utility is not finite at a point of the ball; clip its summands.")
    return Fraction(value)


def exceeds(gap: Fraction, source: Source) -> bool:
    """Return True with probability exactly exp(-gap): whether an exponential variable exceeds it.

    Raises
    ------
    RuntimeError
        If the gap is negative: a utility lies above its plane.
    """
    if gap < 0:
        raise RuntimeError(
            "the utility lies above a tangent plane, so it is not concave up to the error stated; "
            "the release is withheld. Pass a concave utility and a bound on its rounding."
        )
    words, rough = source.words(1), nearest_float(gap)
    energy = exponentials(words)
    with np.errstate(divide="ignore"):  # the last word's energy has no upper bound
        error = exponential_errors(words, energy) + 2.0**-50 * rough
    if np.abs(energy - rough)[0] > error[0]:
        return bool(energy[0] > rough)
    uniform = LazyUniform(int(words[0]))
    while True:
        if uniform.is_interior:
            arithmetic = Arithmetic(uniform.n_bits + GUARD_BITS + magnitude_bits(gap))
            low, high = ends(arithmetic.exponential(uniform))
            if low > gap or high < gap:
                return low > gap
        uniform = uniform.refined(source)
