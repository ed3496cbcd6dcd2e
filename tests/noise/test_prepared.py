import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import gamma, kstest, norm

from tacit.noise import (
    Cap,
    ReplayMismatch,
    SensitivityViolation,
    prepare_cap,
    prepared,
    recording,
    replaying,
    secure_source,
    seeded_source,
)
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.prepared import (
    add_row,
    apply_rows,
    check_shape,
    check_values,
    norm_tolerance,
    prepare_gaussian,
    prepare_sphere,
    reflect_row,
    reflected_rows,
    reflection_margin,
    release_rows,
)
from tacit.privacy import Gaussian, NonPrivate, PureEpsilon, Relation
from tests.noise.helpers import ACCEPT, REJECT

MAKERS: dict[str, Callable[..., Any]] = {
    "gaussian": lambda n, d, source: prepare_gaussian(n, d, 0.7, source),
    "sphere": lambda n, d, source: prepare_sphere(n, d, 0.4, source),
    "cap": lambda n, d, source: prepare_cap(n, d, Cap(d, 0.3 / math.sqrt(d), 0.9), source),
}
EVENT = PureEpsilon(1.0, Relation.REPLACE)


def _values(n, d, norm=1.0):
    rng = np.random.default_rng()
    values = rng.standard_normal((n, d))
    values *= (norm * rng.uniform(0, 1, n) / np.linalg.norm(values, axis=1))[:, None]
    values[: n // 10] *= 1e-200
    values[: n // 20] = 0.0
    values[n // 20 : n // 10, 0] = 0.0
    return values


def _run(kernel, values, rows, norm=1.0, dtype=np.int64):
    steps = np.empty(values.shape, dtype)
    certain = [
        kernel(values[i], rows.floats[i], rows.coins[i], rows.margins[i], rows.scale, norm, out)
        for i, out in enumerate(steps)
    ]
    return steps, np.array(certain)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("d", [1, 2, 3, 17, 50])
def test_the_kernel_the_batch_and_the_exact_path_agree(name, d, monkeypatch):
    n = 60
    values = _values(n, d)
    rows = MAKERS[name](n, d, secure_source())
    steps, certain = _run(rows.kernel, values, rows)
    assert certain.mean() > 0.9
    assert np.array_equal(apply_rows(values, rows, 1.0)[certain], steps[certain])
    assert np.array_equal(_run(rows.kernel, values, rows, dtype=np.float64)[0], steps)
    rows.margins[:] = np.inf
    assert not _run(rows.kernel, values, rows)[1].any()
    for i in np.flatnonzero(certain)[: 30 if d < 20 else 15]:
        assert np.array_equal(rows.exactly(int(i), values[i], 1.0), steps[i])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("d", [1, 2, 16, 17, 50])
def test_compiled_kernels_give_the_same_bits(name, d):
    numba = pytest.importorskip("numba")
    n = 300
    values = _values(n, d)
    rows = MAKERS[name](n, d, secure_source())
    rows.margins[: n // 3] = 0.2  # so that both answers occur
    plain, compiled = (
        _run(kernel, values, rows) for kernel in (rows.kernel, numba.njit(rows.kernel))
    )
    assert np.array_equal(plain[0], compiled[0])
    assert np.array_equal(plain[1], compiled[1])
    assert plain[1].any()
    assert (name == "cap" and d == 1) or not plain[1].all()


def test_kernels():
    kernels: tuple[Any, Any] = add_row, reflect_row
    assert prepare_gaussian(1, 2, 1.0, secure_source()).kernel is kernels[0]
    assert prepare_cap(1, 2, Cap(2, 0.0, 0.9), secure_source()).kernel is kernels[1]


@pytest.mark.parametrize("u", [(1.0, 0, 0), (-1.0, 0, 0), (0, 0.6, 0.8), (-0.0, -0.6, 0.8)])
def test_a_reflection_takes_e1_to_the_value_and_keeps_lengths(u):
    # orthogonal, and e1 -> u: checked on the images of the axes
    images = np.empty((3, 3))
    for i, axis in enumerate(np.eye(3)):
        assert reflect_row(np.array(u), axis, 0.25, 1e-6, 2.0**40, 1.0, images[i])
    images *= 2.0**-40
    assert np.allclose(images[0], u, atol=1e-11)
    assert np.allclose(images @ images.T, np.eye(3), atol=1e-11)


def test_the_coin():
    axis, steps = np.array([1.0, 0.0]), np.empty(2)
    value = np.array([0.0, 0.5])  # + with probability 3/4
    assert reflect_row(value, axis, 0.7499, 0.0, 4.0, 1.0, steps)
    assert steps.tolist() == [0.0, 4.0]
    assert reflect_row(value, axis, 0.7501, 0.0, 4.0, 1.0, steps)
    assert steps.tolist() == [0.0, -4.0]
    assert not np.signbit(steps[0])
    assert not reflect_row(value, axis, 0.75, 0.0, 4.0, 1.0, steps)


def test_halves_are_never_certain():
    steps = np.empty(1, np.int64)
    assert not add_row(np.array([1.0]), np.array([0.5 - 1e-9]), 0.0, 1e-8, 1.0, 1.0, steps)
    assert add_row(np.array([1.0]), np.array([0.5 - 1e-7]), 0.0, 1e-8, 1.0, 1.0, steps)
    assert not add_row(np.array([1.0]), np.array([0.1]), 0.0, np.inf, 1.0, 1.0, steps)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_gaussian_rows_have_their_law(d):
    n = 100_000 // d
    values = np.full((n, d), 0.3)
    rows = prepare_gaussian(n, d, 2.5, secure_source())
    steps = release_rows(values, rows, 1.0, Gaussian(1.0, Relation.REPLACE)).value
    noise = (steps * lattice_spacing(2.5) - values) / 2.5
    assert kstest(noise.ravel(), norm.cdf).pvalue > ACCEPT
    for wrong in (0.9, 1.1):
        assert kstest(noise.ravel() / wrong, norm.cdf).pvalue < REJECT
    products = noise.T @ noise / n
    assert np.max(np.abs(products - np.eye(d))) < 10 / math.sqrt(n)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_sphere_rows_have_their_law(d):
    n, width = 50_000, 0.8
    values = np.full((n, d), -0.2)
    rows = prepare_sphere(n, d, width, secure_source())
    steps = release_rows(values, rows, 1.0, EVENT).value
    noise = (steps / rows.scale - values) / width
    length = np.linalg.norm(noise, axis=1)
    assert kstest(length, gamma(d).cdf).pvalue > ACCEPT
    for wrong in (0.9, 1.1):
        assert kstest(length / wrong, gamma(d).cdf).pvalue < REJECT
    signs = np.sign(noise)
    assert np.max(np.abs(signs.T @ signs / n - np.eye(d))) < 7 / math.sqrt(n)
    assert np.max(np.abs(signs.mean(axis=0))) < 7 / math.sqrt(n)


@pytest.mark.parametrize("name", MAKERS)
def test_few_rows_need_the_exact_path(name):
    rows = MAKERS[name](20_000, 50, secure_source())
    # probability that some coordinate of a row is within its margin of a half
    assert 100 * np.mean(np.minimum(rows.margins, 0.5)) < 5e-5


@pytest.mark.parametrize("name", MAKERS)
def test_a_tape_replays(name):
    values = np.tile(np.array([0.6, 0.0, -0.8]), (5, 1))
    moved, moved_twice = values.copy(), values.copy()
    moved[2] *= -1.0
    moved_twice[2:4] *= -1.0

    def run(values):
        rows = MAKERS[name](5, 3, secure_source())
        return release_rows(values, rows, 1.0, EVENT)

    with recording() as tape:
        first = run(values)
    with replaying(tape):
        second = run(moved)
    assert np.array_equal(first.value, second.value)
    assert second.event == EVENT
    with pytest.raises(SensitivityViolation), replaying(tape):
        run(moved_twice)
    with pytest.raises(ReplayMismatch), replaying(tape):
        pass


def test_seeded_rows_are_not_private():
    rows = prepare_gaussian(2, 2, 1.0, seeded_source(3))
    event = release_rows(np.zeros((2, 2)), rows, 1.0, EVENT).event
    assert isinstance(event, NonPrivate)
    with pytest.raises(ValueError, match="source is not the source"):
        release_rows(np.zeros((2, 2)), rows, 1.0, EVENT, secure_source())


def test_bad_values_are_refused():
    rows = prepare_cap(2, 3, Cap(3, 0.2, 0.9), secure_source())
    good = np.full((2, 3), 0.1)
    with pytest.raises(TypeError, match="float64"):
        release_rows(good.astype(np.float32), rows, 1.0, EVENT)
    with pytest.raises(TypeError, match="float64"):
        release_rows([[0.1, 0.1, 0.1]] * 2, rows, 1.0, EVENT)
    with pytest.raises(ValueError, match="one row for each value"):
        release_rows(good[:1], rows, 1.0, EVENT)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinity"):
            release_rows(np.where(np.eye(2, 3) == 1, bad, good), rows, 1.0, EVENT)
    with pytest.raises(ValueError, match="clip each of them"):
        release_rows(good * 20, rows, 1.0, EVENT)
    with pytest.raises(ValueError, match="norm must be positive"):
        release_rows(good, rows, 0.0, EVENT)


def test_the_norm_has_a_little_slack():
    check_values(np.array([[1.0 + 1e-13, 0.0]]), (1, 2), 1.0)
    with pytest.raises(ValueError, match="longer than norm"):
        check_values(np.array([[1.0 + 1e-11, 0.0]]), (1, 2), 1.0)


def test_values_beyond_whole_doubles_are_refused():
    rows = prepare_gaussian(1, 1, 1e-20, secure_source())
    with pytest.raises(ValueError, match=r"2\^52 steps"):
        release_rows(np.ones((1, 1)), rows, 1.0, EVENT)


@pytest.mark.parametrize("prepare", [prepare_gaussian, prepare_sphere])
def test_bad_shapes_and_sizes_are_refused(prepare):
    class Never:
        is_secure = True

        def words(self, n):
            raise AssertionError("drawn before the arguments were checked")

    for values in ((-1, 2, 1.0), (2, 0, 1.0), (2, 2, 0.0), (2, 2, np.nan), (2, 2, 1e300)):
        with pytest.raises(ValueError):
            prepare(*values, Never())
    for wrong in ((1.5, 2, 1.0), (2, True, 1.0), (2, 2, "1")):
        with pytest.raises(TypeError):
            prepare(*wrong, Never())
    assert prepare(0, 3, 1.0, secure_source()).floats.shape == (0, 3)


def test_zeros_have_no_sign():
    steps = np.empty(2)
    assert reflect_row(np.array([1.0, 0.0]), np.array([1.0, 1e-9]), 0.2, 0.0, 4.0, 1.0, steps)
    assert not np.signbit(steps).any()
    assert add_row(np.full(2, -1e-9), np.zeros(2), 0.0, 0.0, 1.0, 1.0, steps)
    assert not np.signbit(steps).any()


# What exactness rests on


@pytest.mark.parametrize("d", [1, 2, 50])
def test_margins_of_added_rows_are_those_of_the_proof(d):
    # cap_mechanism.md, section 4: 1.01 times the first order, and 2^-36 for one sum
    n, out = 40, np.empty((40, d))
    rows = prepare_gaussian(n, d, 0.7, secure_source())
    error = rows.words.floats(slice(None), rows.ratio, out)
    np.testing.assert_allclose(rows.margins, 1.01 * error + 2.0**-36, rtol=1e-12)
    sphere = prepare_sphere(n, d, 0.4, secure_source())
    kept = ~sphere.length_words
    length = -np.log(kept * 2.0**-64).sum(axis=1)
    length_error = d * (2.0**-52 + 1.0 / kept.min(axis=1)) + (2.0**-47 + d * 2.0**-53) * length
    relative = sphere.words.directions(slice(None), length, out)
    error = sphere.ratio * (length_error + length * (relative + 2.0**-51))
    np.testing.assert_allclose(sphere.margins, 1.01 * error + 2.0**-36, rtol=1e-9)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_rows_of_which_floats_know_nothing_are_decided_by_their_words(name, d):
    values = _values(20, d)
    rows = MAKERS[name](20, d, secure_source())
    steps = apply_rows(values, rows, 1.0)
    rows.floats[:] = 7.0
    rows.margins[:] = np.inf
    for i in range(20):
        assert np.array_equal(rows.exactly(i, values[i], 1.0), steps[i])


def test_a_row_is_certain_if_all_of_it_is():
    position = np.array([[3.1, 5.45], [3.1, 4.55], [3.1, 5.2], [2.9, 4.8]])
    steps, certain = prepared._rounded(position, np.full(4, 0.1), 0.0)
    assert steps.tolist() == [[3, 5], [3, 5], [3, 5], [3, 5]]
    assert certain.tolist() == [False, False, True, True]


def test_batches_take_the_margin_of_sums_in_any_order():
    d = 3
    assert reflection_margin(d, 2.0**21) == 3.0 * d * 2.0**-53 * 2.0**21
    rows = prepare_cap(1, d, Cap(d, 0.2, 0.9), secure_source())
    rows.coins[:] = 0.0
    value = np.array([[0.3, -0.5, 0.4]])
    more = reflection_margin(d, rows.scale)
    position, _ = reflected_rows(value, rows.floats, rows.coins, rows.scale, 1.0)
    room = float(np.min(0.5 - np.abs(position - np.rint(position))))
    for share, certain in ((0.5, False), (1.5, True)):
        rows.margins[:] = room - share * more
        _, found = prepared._reflect_rows(
            value, rows.floats, rows.coins, rows.margins, rows.scale, 1.0
        )
        assert found.tolist() == [certain]
        assert bool(rows._float_steps(0, value[0], 1.0)[1]) is not certain


def test_the_coin_of_a_batch():
    # + with probability 1/2 + ||value|| / (2 norm) = 3/4, as `reflect_row` has it
    values, axis = np.tile([0.0, 2.0], (3, 1)), np.tile([1.0, 0.0], (3, 1))
    coins = np.array([0.7499, 0.7501, 0.75])
    position, sure = reflected_rows(values, axis, coins, 4.0, 4.0)
    assert position[:2].tolist() == [[0.0, 4.0], [0.0, -4.0]]
    assert sure.tolist() == [True, True, False]


def test_most_steps_and_most_rows():
    rows = prepare_gaussian(1, 1, 1.0, secure_source())
    most = 2.0**52 / rows.scale
    assert abs(release_rows(np.full((1, 1), most), rows, most, EVENT).value[0, 0] - 2**52) < 2**20
    with pytest.raises(ValueError, match=r"2\^52 steps"):
        release_rows(np.ones((1, 1)), rows, np.nextafter(most, np.inf), EVENT)
    check_shape(2**31, 2**20)
    with pytest.raises(ValueError, match="n must be"):
        check_shape(2**31 + 1, 1)
    with pytest.raises(ValueError, match="d must be"):
        check_shape(1, 2**20 + 1)


def test_the_slack_of_the_norm_is_the_one_that_noise_is_widened_for():
    # local_sanitizers.md, section 0
    assert norm_tolerance(1) == 1e-12 + 2.0**-52
    assert norm_tolerance(1000) == 1e-12 + 1000 * 2.0**-52


def test_norms_of_tiny_values_do_not_vanish():
    for value in (1e-200, 1e-300):
        check_values(np.full((1, 1), value), (1, 1), value)
        with pytest.raises(ValueError, match="longer than norm"):
            check_values(np.full((1, 1), value), (1, 1), value / 2)
