"""Points of a ball are drawn with exactly the stated law, whatever the boxes are."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.noise import ReplayMismatch, recording, replaying, secure_source
from tacit.noise.exact.interval_arithmetic import Arithmetic, LazyUniform, ends, exponentials
from tacit.noise.selection import ball as ball_selection
from tacit.noise.selection.ball import (
    BallLattice,
    Cells,
    Concave,
    _lower_planes,
    _touches,
    exceeds,
    refined,
    select_in_ball,
)
from tacit.privacy import ExponentialMechanism, Relation
from tests.noise.helpers import ACCEPT, REJECT, WordSource, grouped_pvalue

Array = npt.NDArray[np.float64]
RADIUS = 1.3
RATE = Fraction(3, 2)


def logistic(rows: Array) -> Concave:
    """Minus a logistic loss; rows carry the sign of their label."""

    def tangents(points: Array) -> tuple[Array, Array]:
        margins = points @ rows.T
        return -np.logaddexp(0.0, -margins).sum(axis=1), (1 / (1 + np.exp(margins))) @ rows

    return Concave(
        at=lambda w: float(tangents(w[None])[0][0]),
        tangents=tangents,
        error=1e-11,
        sensitivity=2.0,
        relation=Relation.ADD_REMOVE,
    )


def corners(rows: Array) -> Concave:
    """Minus a sum of distances along rows, which has corners in the ball."""
    places = np.linspace(-1.0, 1.0, len(rows))

    def tangents(points: Array) -> tuple[Array, Array]:
        gaps = points @ rows.T - places
        return -np.abs(gaps).sum(axis=1), -np.sign(gaps) @ rows

    return Concave(
        at=lambda w: float(tangents(w[None])[0][0]),
        tangents=tangents,
        error=1e-11,
        sensitivity=2.0,
        relation=Relation.ADD_REMOVE,
    )


def straight(rows: Array) -> Concave:
    """A slope, which is greatest on the sphere: planes there use the ball."""
    slope = rows.sum(axis=0)
    return Concave(
        at=lambda w: float(slope @ w),
        tangents=lambda points: (points @ slope, np.tile(slope, (len(points), 1))),
        error=1e-11,
        sensitivity=2.0,
        relation=Relation.ADD_REMOVE,
    )


def rows_of(dimension: int, n: int = 12) -> Array:
    rows: Array = np.random.default_rng(dimension).standard_normal((n, dimension))
    rows[:, 0] += 0.7  # so that the best point is on the sphere
    return rows


CASES: dict[str, tuple[Callable[[Array], Concave], int, int]] = {
    "logistic-1": (logistic, 1, 40),
    "corners-1": (corners, 1, 40),
    "logistic-2": (logistic, 2, 6),
    "corners-2": (corners, 2, 6),
    "straight-2": (straight, 2, 6),
    "logistic-3": (logistic, 3, 3),
    "straight-3": (straight, 3, 3),
    "logistic-4": (logistic, 4, 2),
}


def case(name: str) -> tuple[Concave, BallLattice]:
    make, dimension, per_radius = CASES[name]
    return make(rows_of(dimension)), BallLattice(RADIUS, dimension, per_radius)


@cache
def candidates(lattice: BallLattice) -> npt.NDArray[np.int64]:
    """All candidates, in units of the spacing, by looking at each point of a box."""
    side = range(-lattice.half_width - 2, lattice.half_width + 3)
    points = np.array(list(product(side, repeat=lattice.dimension)))
    sizes = (points**2).sum(axis=1) * Fraction(lattice.spacing) ** 2
    return points[np.array([size <= Fraction(lattice.radius) ** 2 for size in sizes])]


def law(utility: Concave, lattice: BallLattice, rate: float) -> Array:
    """The stated law over the candidates."""
    values = np.array([utility.at(p * lattice.spacing) for p in candidates(lattice)])
    weights = np.exp(rate * (values - values.max()))
    shares: Array = weights / weights.sum()
    return shares


def law_of_cells(cells: Cells, utility: Concave, lattice: BallLattice) -> Array:
    """The law of what is drawn from boxes and accepted, from every part of the sampler."""
    found = np.zeros(len(candidates(lattice)))
    place = {tuple(p): i for i, p in enumerate(candidates(lattice))}
    top = max(float(cells.log_masses(float(RATE))[0].max()), -1e300)
    for b in range(cells.value.size):
        box = cells.box(b, RATE)
        mass = math.exp(float(ends(box.enclose(Arithmetic(200)))[0]) - top)
        for steps in product(*(range(n) for n in box.size)):
            point = box.place(list(steps))
            if not lattice.contains(point):
                continue
            chance = mass
            for run, m in zip(box._runs, steps, strict=True):
                before, after = (run.share_before(k, 200)[0] for k in (m, m + 1))
                chance *= float(after - before)
            gap = box.log_weight(point) - RATE * Fraction(utility.at(point * lattice.spacing))
            assert gap >= 0
            found[place[tuple(point)]] += chance * math.exp(-float(gap))
    return found / found.sum()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("splits", [0, 5])
def test_the_law_is_exact_whatever_the_boxes(name: str, splits: int) -> None:
    utility, lattice = case(name)
    cells = refined(utility, lattice, RATE)
    for b in range(splits):
        cells = cells.split(np.array([7 * b % cells.value.size]), lattice, utility.raised, 1.5)
    expected = law(utility, lattice, float(RATE))
    assert np.allclose(law_of_cells(cells, utility, lattice), expected, rtol=1e-9, atol=1e-14)
    # one box around all is exact as well, and half the rate is another law
    whole = Cells.whole(lattice, utility.raised, float(RATE))
    assert np.allclose(law_of_cells(whole, utility, lattice), expected, rtol=1e-9, atol=1e-14)
    assert not np.allclose(law(utility, lattice, 0.9 * float(RATE)), expected, rtol=1e-3)


def counted(name: str, draws: int) -> tuple[Array, Concave, BallLattice]:
    utility, lattice = case(name)
    cells, source = refined(utility, lattice, RATE), secure_source()
    counts = np.zeros(len(candidates(lattice)))
    place = {tuple(p): i for i, p in enumerate(candidates(lattice))}
    for _ in range(draws):
        point = ball_selection._draw(cells, utility, lattice, RATE, source)
        counts[place[tuple((point / lattice.spacing).astype(int))]] += 1
    return counts, utility, lattice


def check_frequencies(name: str, draws: int, off: tuple[float, ...]) -> None:
    counts, utility, lattice = counted(name, draws)
    assert grouped_pvalue(counts, law(utility, lattice, float(RATE))) > ACCEPT
    for factor in off:
        assert grouped_pvalue(counts, law(utility, lattice, factor * float(RATE))) < REJECT


@pytest.mark.parametrize("name", ["corners-1", "logistic-2"])
def test_frequencies(name: str) -> None:
    check_frequencies(name, 8000, (0.5, 2.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic-1", "corners-2"])
def test_frequencies_of_many_draws(name: str) -> None:
    check_frequencies(name, 100_000, (0.9, 1.1))


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
@pytest.mark.parametrize("make", [logistic, corners, straight])
def test_boxes_hold_every_candidate_once_under_a_plane(
    make: Callable[[Array], Concave], dimension: int
) -> None:
    utility, lattice = make(rows_of(dimension, 200)), BallLattice(RADIUS, dimension)
    cells = refined(utility, lattice, RATE)
    last = cells.first + cells.size - 1
    rng = np.random.default_rng(dimension)
    heaviest = np.argsort(cells.log_masses(float(RATE))[0])[::-1][:20]
    proposed = [cells.box(int(b), RATE).draw(secure_source()) for b in heaviest for _ in range(10)]
    anywhere = rng.integers(-lattice.half_width, lattice.half_width, (200, dimension))
    for point in [*proposed, *anywhere]:
        inside = ((cells.first <= point) & (point <= last)).all(axis=1)
        assert inside.sum() == 1 or not lattice.contains(point)
        if not lattice.contains(point):
            continue
        box = cells.box(int(np.flatnonzero(inside)[0]), RATE)
        assert box.log_weight(point) >= RATE * Fraction(utility.at(point * lattice.spacing))
    volume = np.prod(cells.size.astype(float), axis=1).sum()
    assert volume <= (2.0 * lattice.half_width) ** dimension


def test_masses_in_floats_are_within_their_error() -> None:
    for dimension in (1, 2, 3, 4):
        utility = logistic(rows_of(dimension, 300))
        cells = refined(utility, BallLattice(RADIUS, dimension), RATE)
        masses, error = cells.log_masses(float(RATE))
        for b in range(0, cells.value.size, 5):
            low, high = ends(cells.box(b, RATE).enclose(Arithmetic(300)))
            assert high - low < 2.0**-100
            assert abs(low - Fraction(float(masses[b]))) < Fraction(error) / 2


def test_no_box_is_large_and_few_points_are_rejected() -> None:
    utility, lattice = logistic(rows_of(3, 400)), BallLattice(RADIUS, 3)
    calls = []
    counted = Concave(
        lambda w: calls.append(1) or utility.at(w),  # type: ignore[func-returns-value]
        utility.tangents,
        1e-11,
        2.0,
        Relation.ADD_REMOVE,
    )
    cells, source = refined(counted, lattice, RATE), secure_source()
    masses, _ = cells.log_masses(float(RATE))
    assert np.exp(masses - np.logaddexp.reduce(masses)).max() <= 3.0**-4
    assert cells.value.size < 3000
    for _ in range(300):
        ball_selection._draw(cells, counted, lattice, RATE, source)
    assert len(calls) < 300 * 20


@pytest.mark.parametrize("gap", [0.0, 1e-30, 0.3, 2.0, 40.0, 1e6])
@pytest.mark.parametrize("word", [0, 1, 2**62, 2**63, 2**64 - 2, 2**64 - 1])
def test_an_exponential_variable_is_compared_exactly(gap: float, word: int) -> None:
    exact = Fraction(gap)
    answer = exceeds(exact, WordSource([word], WordSource([5] * 9)))
    import mpmath

    with mpmath.workprec(2000):
        share = mpmath.mpf(word) / 2**64 + (mpmath.mpf(5) + 0.5) / mpmath.mpf(2) ** 128
        assert answer == bool(-mpmath.log1p(-share) > mpmath.mpf(gap))


def test_where_floats_cannot_tell_more_bits_decide() -> None:
    word = 2**63
    with_more = [WordSource([word], WordSource([more])) for more in (0, 2**64 - 1)]
    low, high = ends(Arithmetic(400).exponential(LazyUniform(word)))
    middle = (low + high) / 2
    assert [exceeds(middle, source) for source in with_more] == [False, True]
    assert all(source.n_extra == 1 for source in with_more)


# What must not go unnoticed.


def many_times(draw: Callable[[], object]) -> None:
    for _ in range(500):
        draw()


def test_a_utility_above_its_planes_is_refused() -> None:
    bowl = Concave(
        at=lambda w: float(w @ w),
        tangents=lambda points: ((points**2).sum(axis=1), 2 * points),
        error=1e-12,
        sensitivity=1.0,
        relation=Relation.ADD_REMOVE,
    )
    with pytest.raises(RuntimeError, match="not concave"):
        many_times(lambda: select_in_ball(bowl, BallLattice(1.0, 2), 1.0))


def mutant_law(monkeypatch: pytest.MonkeyPatch, name: str, change: Any) -> float:
    """How far the law of the boxes is from the stated one, with something changed."""
    utility, lattice = case("logistic-2")
    monkeypatch.setattr(Cells, name, change)
    cells = refined(utility, lattice, RATE)
    found = law_of_cells(cells, utility, lattice)
    expected = law(utility, lattice, float(RATE))
    return float(np.abs(np.log(found / expected)).max())


def test_a_rate_that_is_doubled_is_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Cells.box
    with pytest.raises(AssertionError):
        # a plane at twice the rate is below the utility, or the law is wrong
        assert mutant_law(monkeypatch, "box", lambda self, b, rate: box(self, b, 2 * rate)) < 1e-6


def test_a_plane_below_the_utility_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = Concave.raised
    monkeypatch.setattr(
        Concave, "raised", lambda self, p: (raised(self, p)[0] - 0.05, raised(self, p)[1])
    )
    utility, lattice = case("logistic-2")
    cells, source = refined(utility, lattice, RATE), secure_source()
    with pytest.raises(RuntimeError, match="above a tangent plane"):
        many_times(lambda: ball_selection._draw(cells, utility, lattice, RATE, source))


def test_half_the_sensitivity_is_found_by_a_replay() -> None:
    rows = rows_of(2)
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]

    def fit(share: float) -> Callable[[Array], object]:
        def run(table: Array) -> object:
            base = logistic(table)
            # relative to w = 0, a record of norm 1 counts for at most the radius
            zero = base.at(np.zeros(2))
            moved = Concave(
                lambda w: base.at(w) - zero,
                lambda p: (base.tangents(p)[0] - zero, base.tangents(p)[1]),
                1e-11,
                share * RADIUS,
                Relation.ADD_REMOVE,
            )
            return select_in_ball(moved, BallLattice(RADIUS, 2), 1.0).event

        return run

    more = np.vstack([rows, [[1.0, 0.0]]])
    for share, fails in ((1.0, False), (0.4, True)):
        with recording() as tape:
            fit(share)(rows)
        with replaying(tape):
            if fails:
                with pytest.raises(ReplayMismatch):
                    fit(share)(more)
            else:
                assert fit(share)(more) == ExponentialMechanism(1.0, Relation.ADD_REMOVE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"radius": 0.0, "dimension": 2}, "radius"),
        ({"radius": math.inf, "dimension": 2}, "radius"),
        ({"radius": 1.0, "dimension": 5}, "noisy gradient"),
        ({"radius": 1.0, "dimension": 0}, "dimension"),
        ({"radius": 1.0, "dimension": 2, "per_radius": 2**40}, "per_radius"),
        ({"radius": 2.0**-950, "dimension": 2}, "radius"),
    ],
)
def test_what_a_lattice_refuses(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BallLattice(**arguments)


def test_what_is_refused_before_anything_is_drawn() -> None:
    utility, lattice = case("logistic-2")
    silent = WordSource([])
    with pytest.raises(TypeError, match="Concave"):
        select_in_ball(3.0, lattice, 1.0, source=silent)
    with pytest.raises(TypeError, match="BallLattice"):
        select_in_ball(utility, 3.0, 1.0, source=silent)
    with pytest.raises(ValueError, match="epsilon"):
        select_in_ball(utility, lattice, math.inf, source=silent)
    with pytest.raises(ValueError, match="sensitivity"):
        Concave(utility.at, utility.tangents, 0.0, 0.0, Relation.REPLACE)
    with pytest.raises(ValueError, match="error"):
        Concave(utility.at, utility.tangents, -1.0, 1.0, Relation.REPLACE)


def test_what_is_not_finite_is_refused() -> None:
    utility, lattice = case("logistic-2")
    broken = Concave(lambda w: math.nan, utility.tangents, 0.0, 1.0, Relation.REPLACE)
    with pytest.raises(ValueError, match="not finite"):
        select_in_ball(broken, lattice, 1.0)


def test_the_rate_is_that_of_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[Fraction] = []
    monkeypatch.setattr(ball_selection, "refined", lambda utility, lattice, rate: rate)
    monkeypatch.setattr(
        ball_selection, "_draw", lambda cells, utility, lattice, rate, words: rates.append(rate)
    )
    utility = logistic(np.array([[1.0, 0.0]]))
    select_in_ball(utility, BallLattice(RADIUS, dimension=2), epsilon=0.7)
    assert rates == [Fraction(0.7) / Fraction(utility.sensitivity) / 2]


# What exactness rests on.


def test_tangents_are_raised_by_all_of_the_error() -> None:
    for error in (1e-17, 1e-12, 0.1):
        utility = Concave(
            at=lambda w: 0.0,
            tangents=lambda points: (points[:, 0], points),
            error=error,
            sensitivity=1.0,
            relation=Relation.ADD_REMOVE,
        )
        values = np.linspace(-3.0, 3.0, 101)[:, None]
        raised, _ = utility.raised(values)
        for value, top in zip(values[:, 0], raised, strict=True):
            assert Fraction(float(top)) >= Fraction(float(value)) + Fraction(error)


@pytest.mark.parametrize("side", [1, -1])
def test_floats_compare_exponential_variables_only_beyond_their_error(
    side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exactly(Exception):
        pass

    def exactly(numerator: int) -> None:
        raise Exactly

    monkeypatch.setattr(ball_selection, "LazyUniform", exactly)
    word = 3 << 62
    energy = float(exponentials(np.array([word], dtype=np.uint64))[0])
    assert 1.0 < energy < 2.0
    # 2^-44 for the logarithm, 2^-50 for the gap as a float, and what the word leaves open
    error = energy * (2.0**-44 + 2.0**-50) + 1.0 / (2**64 - 1 - word)
    for share, certain in ((1 - 2.0**-8, False), (1 + 2.0**-8, True)):
        gap = Fraction(energy + side * share * error)
        if certain:
            assert exceeds(gap, WordSource([word])) is (side < 0)
        else:
            with pytest.raises(Exactly):
                exceeds(gap, WordSource([word]))


@pytest.mark.parametrize("radius", [1.0, 1.3, 0.7, 5.0])
@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_candidates_are_the_points_of_the_closed_ball(radius: float, dimension: int) -> None:
    lattice = BallLattice(radius, dimension, 5)
    step = Fraction(lattice.spacing)
    most = lattice.squared_radius
    assert most * step**2 <= Fraction(radius) ** 2 < (most + 1) * step**2
    # The error of a utility is stated for planes of boxes that reach less than twice as far.
    furthest = math.isqrt(most)
    assert furthest < lattice.half_width <= 2 * furthest
    outside = np.array([furthest + 1] + [0] * (dimension - 1))
    assert lattice.contains(outside - np.eye(1, dimension, dtype=np.int64)[0])
    assert not lattice.contains(outside)


def test_a_point_on_the_sphere_is_a_candidate_of_its_box() -> None:
    # 3^2 + 4^2 = 5^2; a box of one point that is left out would never be drawn
    lattice = BallLattice(5.0, 2, 5)
    assert lattice.squared_radius == 25
    assert lattice.contains(np.array([3, -4]))
    rng = np.random.default_rng(3)
    first, size = rng.integers(-9, 8, (400, 2)), rng.integers(1, 5, (400, 2))
    first[:4], size[:4] = [[3, 4], [-3, 4], [5, 0], [-3, -4]], 1
    held = [
        any(i * i + j * j <= 25 for i in range(a, a + m) for j in range(b, b + n))
        for (a, b), (m, n) in zip(first.tolist(), size.tolist(), strict=True)
    ]
    assert _touches(first, size, lattice).tolist() == held


def test_no_point_is_lost_by_splitting() -> None:
    lattice = BallLattice(5.0, 2, 5)
    utility = straight(rows_of(2))
    first, size = np.array([[1, 1], [2, 3]]), np.array([[1, 1], [1, 2]])
    # the bend is along the axis that has a single point
    cells = Cells(first, size, np.zeros(2), np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, 1e-9]]))
    split = cells.split(np.array([0, 1]), lattice, utility.raised, 1.0)
    assert sorted(map(tuple, split.first)) == [(1, 1), (2, 3), (2, 4)]
    assert (split.size == 1).all()


def test_the_error_of_log_masses_is_that_of_the_proof() -> None:
    # selection_in_a_ball.md, section 3
    size = np.array([[4, 8], [2, 1]])
    slope = np.array([[-3.0, 2.0], [0.5, -90.0]])
    value = np.array([-7.0, -40.0])
    cells = Cells(np.zeros((2, 2), dtype=np.int64), size, value, slope, slope)
    terms = 2.5 * (40.0 + 0.5 * 2 + 90.0 * 1)
    assert cells.log_masses(2.5)[1] == 2.0**-47 * terms + 4 * 2.0**-38


def test_planes_that_use_the_ball_lie_above_the_tangents() -> None:
    lattice = BallLattice(40.0, 2, 40)
    most = lattice.squared_radius
    rng = np.random.default_rng(4)
    # boxes about the sphere, with slopes that lead out of the ball
    turn = rng.uniform(0.0, 2 * np.pi, 300)
    first = np.rint(38.0 * np.column_stack([np.cos(turn), np.sin(turn)])).astype(np.int64) - 4
    size = rng.integers(2, 9, (300, 2))
    centre = first + (size - 1) / 2
    slope = centre * rng.uniform(0.1, 5.0, (300, 1)) + rng.normal(0, 5.0, (300, 2))
    value = rng.normal(0, 1e3, 300)
    planes, slopes = _lower_planes(first, size, value, slope, lattice, 10.0)
    changed = np.flatnonzero(planes != value)
    assert changed.size > 100
    for b in changed:
        middle = [Fraction(float(c)) for c in centre[b]]
        axis = int(np.argmax(np.abs(centre[b])))
        # the slope says which multiple of S - ||i||^2 was added
        pull = (slope[b, axis] - slopes[b, axis]) / (2 * centre[b, axis])
        inside = Fraction(pull) * (most - sum(c * c for c in middle))
        above = Fraction(float(planes[b])) - Fraction(float(value[b])) - inside
        # ... and what is added for rounding: 2^-46 of all sizes, the float pull off by 2^-50
        sizes = abs(value[b]) + pull * (most + np.sum(centre[b] ** 2))
        sizes += np.sum((np.abs(slope[b]) + np.abs(2 * pull * centre[b])) * size[b])
        assert 0.9 * 2.0**-46 * sizes <= float(above) <= 1.1 * 2.0**-46 * sizes
        for i in product(*(range(f, f + n) for f, n in zip(first[b], size[b], strict=True))):
            if not lattice.contains(np.array(i)):
                continue
            gaps = [int(j) - c for j, c in zip(i, middle, strict=True)]
            tangent, plane = (
                Fraction(float(v))
                + sum(Fraction(float(x)) * g for x, g in zip(s, gaps, strict=True))
                for v, s in ((value[b], slope[b]), (planes[b], slopes[b]))
            )
            assert plane >= tangent
