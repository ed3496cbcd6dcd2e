import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.noise import (
    Grid,
    Norm,
    ReplayMismatch,
    SensitivityViolation,
    recording,
    replaying,
    secure_source,
)
from tacit.noise.selection import finite, line
from tacit.noise.selection.geometric_run import Run
from tacit.noise.selection.line import select_on_line
from tacit.privacy import ExponentialMechanism, Relation
from tests.noise.helpers import ACCEPT, REJECT, WordSource, bounded

GRID = Grid(-1.0, 2.3, n_points=20)
KNOTS = np.array([-1.0, -0.51, -0.5, 0.31, 0.31, 1.2, 1.21, 2.3])


def _linear():
    return bounded(-np.abs(KNOTS - 0.4) * 3, 1.0, Norm.LINF)


def _constant():
    steps = -np.abs(np.arange(KNOTS.size - 1.0) - 3)
    return bounded(np.column_stack([steps, steps]), 1.0, Norm.LINF)


def _jumping():
    rng = np.random.default_rng(5)
    return bounded(rng.uniform(-2, 2, (KNOTS.size - 1, 2)), 1.0, Norm.LINF)


def _points(grid):
    return np.arange(grid.first, grid.last + 1) * grid.spacing


def _utility(utilities, points):
    """The utility at each point, by the definition."""
    value = utilities.value
    pairs = np.column_stack([value[:-1], value[1:]]) if value.ndim == 1 else value
    result = []
    for x in points:
        j = min(int(np.searchsorted(KNOTS, x, side="right")) - 1, KNOTS.size - 2)
        share = (x - KNOTS[j]) / (KNOTS[j + 1] - KNOTS[j])
        result.append(pairs[j, 0] * (1 - share) + pairs[j, 1] * share)
    return np.array(result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "monotone"),
    [
        *((make, False) for make in (_linear, _constant, _jumping)),
        (_constant, True),
        *(pytest.param(make, True, marks=pytest.mark.slow) for make in (_linear, _jumping)),
    ],
)
def test_frequencies_are_those_of_the_exponential_mechanism(make, monotone):
    utilities, points, source = make(), _points(GRID), secure_source()
    epsilon = 1.1
    drawn = [
        select_on_line(KNOTS, utilities, GRID, epsilon, monotone=monotone, source=source).value
        for _ in range(4000)
    ]
    assert set(drawn) <= set(points.tolist())
    counts = np.array([drawn.count(x) for x in points])
    rate = epsilon * (1.0 if monotone else 0.5)

    def pvalue(rate):
        weights = np.exp(rate * _utility(utilities, points))
        expected = counts.sum() * weights / weights.sum()
        rare = expected < 20  # too few for chi-square: taken together
        seen = np.append(counts[~rare], counts[rare].sum())
        due = np.append(expected[~rare], expected[rare].sum())
        return chisquare(seen[due > 0], due[due > 0]).pvalue

    assert pvalue(rate) > ACCEPT
    assert pvalue(rate * 2.0) < REJECT
    assert pvalue(rate * 0.3) < REJECT


@pytest.mark.parametrize("make", [_linear, _constant, _jumping])
def test_enclosed_masses_agree_with_floats_and_with_sums(make):
    from tacit.noise.exact.interval_arithmetic import Arithmetic, ends

    utilities = make()
    pieces = line._Pieces.new(KNOTS, utilities, GRID)
    log_mass, error = line._log_masses(pieces, 0.7)
    utility = _utility(utilities, _points(GRID))
    assert np.allclose(pieces.on_grid(), utility, atol=1e-12)
    start = 0
    for i, n in enumerate(pieces.n):
        low, high = ends(pieces.run(i, Fraction(0.7)).enclose(Arithmetic(200)))
        assert abs(float(low) - log_mass[i]) < error / 2
        assert high - low < 2.0**-150
        direct = math.log(np.exp(0.7 * utility[start : start + n]).sum())
        assert float(low) == pytest.approx(direct, abs=1e-12)
        start += n


def test_the_exact_race_agrees_with_floats(monkeypatch):
    rng = np.random.default_rng()
    for _ in range(20):
        knots = np.sort(np.concatenate([[0.0, 1.0], rng.random(20)]))
        utilities = bounded(rng.standard_normal(22) * 3, 1.0, Norm.LINF)
        words = secure_source().words(30)
        n_pieces = line._Pieces.new(knots, utilities, Grid(0.0, 1.0, 1000)).n.size
        words = words[: n_pieces + 1]
        values = []
        for margin in (finite._LOG_MARGIN, 1e9):
            monkeypatch.setattr(finite, "_LOG_MARGIN", margin)
            source = WordSource(words, secure_source())
            values.append(
                select_on_line(knots, utilities, Grid(0.0, 1.0, 1000), 1.0, source=source).value
            )
            monkeypatch.undo()
        assert values[0] == values[1]


def test_steep_and_far_utilities():
    knots = np.array([0.0, 0.25, 0.25, 1.0])
    cliff = bounded(np.array([[-1e149, -1e70], [5.0, 5.0], [0.0, -1e149]]), 1.0, Norm.LINF)
    assert select_on_line(knots, cliff, Grid(0.0, 1.0, 64), 1.0).value == 0.25
    offset = bounded(np.array([1e12, 1e12 + 50.0]), 1.0, Norm.LINF)
    assert select_on_line(np.array([0.0, 1.0]), offset, Grid(0.0, 1.0), 10.0).value > 0.5


def test_a_million_knots():
    rng = np.random.default_rng()
    knots = np.concatenate([[0.0], np.sort(rng.random(10**6)), [1.0]])
    utility = -np.abs(np.arange(knots.size) - knots.size / 2.0)
    release = select_on_line(knots, bounded(utility, 1.0, Norm.LINF), Grid(0.0, 1.0), 1.0)
    assert abs(release.value - 0.5) < 0.01


def test_the_grid():
    assert GRID.spacing == 0.125
    assert _points(GRID)[0] == -1.0
    assert _points(GRID)[-1] == 2.25
    for lower, upper, n in [
        (0.0, 1.0, 2),
        (0.0, 1.0, 1000),
        (-7.3, 100.1, 4096),
        (1e6, 1e6 + 1, 99),
    ]:
        grid = Grid(lower, upper, n)
        assert n <= grid.last - grid.first + 1 < 2 * n + 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1.0), "below upper"),
        ((2.0, 1.0), "swap"),
        ((math.nan, 1.0), "public range"),
        ((0.0, math.inf), "public range"),
        ((0.0, 1.0, 1), "n_points"),
        ((1e16, 1e16 + 4, 1000), "fewer points"),
    ],
)
def test_nonsense_grids_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Grid(*arguments)


@pytest.mark.parametrize(
    ("knots", "value", "message"),
    [
        (np.array([0.0]), np.zeros(2), "at least two"),
        (np.array([0.0, 0.7, 0.6, 1.0]), np.zeros(4), "sort"),
        (np.array([0.1, 1.0]), np.zeros(2), "ends around"),
        (np.array([0.0, np.nan, 1.0]), np.zeros(3), "clip"),
        (np.array([0.0, 1.0]), np.zeros(3), "shape"),
    ],
)
def test_nonsense_pieces_are_refused(knots, value, message):
    with pytest.raises(ValueError, match=message):
        select_on_line(knots, bounded(value, norm=Norm.LINF), Grid(0.0, 1.0), 1.0)


def test_other_refusals_and_the_event():
    knots, value = np.array([0.0, 1.0]), np.zeros(2)
    with pytest.raises(TypeError, match="Grid"):
        select_on_line(knots, bounded(value, norm=Norm.LINF), (0.0, 1.0), 1.0)
    with pytest.raises(ValueError, match=r"Norm\.LINF"):
        select_on_line(knots, bounded(value), Grid(0.0, 1.0), 1.0)
    replace = bounded(value, norm=Norm.LINF, relation=Relation.REPLACE)
    with pytest.raises(ValueError, match="monotone=False"):
        select_on_line(knots, replace, Grid(0.0, 1.0), 1.0, monotone=True)
    event = select_on_line(knots, bounded(value, norm=Norm.LINF), Grid(0.0, 1.0), 0.3).event
    assert event == ExponentialMechanism(0.3)


def _median(numbers, sensitivity, monotone=False):
    """Rank utility of a median: -|#below - n / 2|, which one record moves by 1/2."""
    knots = np.concatenate([[0.0], np.sort(numbers), [1.0]])
    steps = -np.abs(np.arange(len(numbers) + 1) - len(numbers) / 2)
    utilities = bounded(np.column_stack([steps, steps]), sensitivity, Norm.LINF)
    grid = Grid(0.0, 1.0, 2**12)
    return select_on_line(knots, utilities, grid, 1.0, monotone=monotone).value


def test_an_audit_compares_the_utility_not_the_knots():
    numbers = np.random.default_rng().random(50)
    with recording() as tape:
        first = _median(numbers, 0.5)
    with replaying(tape):
        assert _median(numbers[:-1], 0.5) == first
    with recording() as tape:
        _median(numbers, 0.4)
    with pytest.raises(SensitivityViolation, match=r"0\.5"), replaying(tape):
        _median(numbers[:-1], 0.4)
    with recording() as tape:
        _median(numbers, 0.5, monotone=True)
    with pytest.raises(SensitivityViolation, match="monotone"), replaying(tape):
        _median(numbers[:-1], 0.5, monotone=True)
    with pytest.raises(ReplayMismatch, match="public"), replaying(tape):
        _median(numbers[:-1], 0.5)


# What exactness rests on


def test_the_error_of_log_masses_is_that_of_the_proof():
    # selection_on_a_line.md, section 3: 2^-46 of the largest log-weight, of either sign
    for value in ([3.0, -40.0, 2.0], [-40.0, 3.0, 2.0], [3.0, 2.0, 40.0], [-1.0, -2.0, -40.0]):
        pieces = line._Pieces.new(
            np.array([0.0, 0.4, 1.0]), bounded(np.array(value), 1.0, Norm.LINF), Grid(0.0, 1.0, 8)
        )
        _, error = line._log_masses(pieces, 2.5)
        assert error == 2.0**-46 * 2.5 * 40.0 + 2.0**-38


@pytest.mark.parametrize("slope", [-3.0, 3.0])
def test_places_count_from_the_end_of_larger_weight(slope, monkeypatch):
    grid = Grid(-1.0, 1.0, 16)
    utilities = bounded(np.array([0.0, 2.0 * slope]), 1.0, Norm.LINF)
    monkeypatch.setattr(Run, "draw", lambda self, source: 3)
    found = select_on_line(np.array([-1.0, 1.0]), utilities, grid, 1.0).value
    assert found == (grid.last - 3 if slope > 0 else grid.first + 3) * grid.spacing


@pytest.mark.parametrize("sign", [1, -1])
def test_both_ends_of_a_grid_are_whole_doubles(sign):
    # below 2^52 steps, so that a knot's place between two of them is exact
    n = 2**40
    for far, refused in ((2.0**52, True), (2.0**52 - 1.0, False)):
        near = far - n
        lower, upper = sorted((sign * near, sign * far))
        if refused:
            with pytest.raises(ValueError, match="fewer points"):
                Grid(lower, upper, n)
        else:
            assert Grid(lower, upper, n).spacing == 1.0


def test_no_candidate_lies_outside_of_the_range():
    for lower, upper in ((-7.3, 100.1), (0.1, 0.9), (-0.9, -0.1)):
        grid = Grid(lower, upper, 64)
        assert (grid.first - 1) * grid.spacing < lower <= grid.first * grid.spacing
        assert grid.last * grid.spacing <= upper < (grid.last + 1) * grid.spacing
