import mpmath
import numpy as np
import pytest

from tacit.noise import secure_source
from tacit.noise.exact import gaussian_pairs
from tacit.noise.exact.gaussian_pairs import LOG_ERROR, TURN_ERROR, LazyNormals, NormalWords, turns
from tacit.noise.exact.interval_arithmetic import Arithmetic, LazyUniform, ends
from tests.noise.helpers import WordSource

ALL = slice(None)


def _words(n):
    powers = 2 ** np.arange(64, dtype=np.uint64)
    return np.concatenate([secure_source().words(n), powers, ~powers, np.zeros(1, np.uint64)])


def test_turns_are_far_within_their_error():
    words = _words(2000)
    cosine, sine = turns(words)
    with mpmath.workdps(40):
        for word, c, s in zip(words, cosine, sine, strict=True):
            for numerator in (int(word), int(word) + 1):
                angle = 2 * mpmath.pi * numerator / 2**64
                error = mpmath.hypot(mpmath.cos(angle) - c, mpmath.sin(angle) - s)
                assert error < TURN_ERROR / 2


def test_a_shorter_series_would_be_seen(monkeypatch):
    words = secure_source().words(200)
    whole = turns(words)
    monkeypatch.setattr(gaussian_pairs, "_ARC_BITS", 6)
    monkeypatch.setattr(gaussian_pairs, "_ANGLE_BITS", 58)
    monkeypatch.setattr(gaussian_pairs, "_ANGLE_MASK", np.uint64(2**58 - 1))
    monkeypatch.setattr(gaussian_pairs, "_HALF_ARC", 2**57)
    gaussian_pairs._arcs.cache_clear()
    try:
        assert np.max(np.abs(turns(words)[1] - whole[1])) > 100 * TURN_ERROR
    finally:
        gaussian_pairs._arcs.cache_clear()


def test_the_logarithm_is_far_within_its_error():
    half = (_words(2000) >> np.uint64(1)).astype(np.float64) * 2.0**-63
    half = half[(half > 0) & (half < 1)]
    with mpmath.workdps(40):
        for u, log in zip(half, np.log(half), strict=True):
            truth = mpmath.log(mpmath.mpf(float(u)))
            assert abs(log - truth) <= LOG_ERROR / 16 * abs(truth)


def _exactly(words, i):
    """Return row i at the low ends of its uniform variables, to 40 digits."""
    with mpmath.workdps(40):
        row = []
        for radius, angle in zip(words.radius[i], words.angle[i], strict=True):
            r = mpmath.sqrt(-2 * mpmath.log((int(radius) + mpmath.mpf(1) / 2) / 2**64))
            a = 2 * mpmath.pi * int(angle) / 2**64
            row += [r * mpmath.cos(a), r * mpmath.sin(a)]
        return row[: words.n_coordinates]


@pytest.mark.parametrize("d", [1, 2, 3, 8, 49])
def test_rows_are_far_within_their_bounds(d):
    n = 40
    words = NormalWords.new(n, d, secure_source())
    out, turned = np.empty((n, d)), np.empty((n, d))
    bound = words.floats(ALL, 3.0, out)
    relative = words.directions(ALL, np.full(n, 5.0), turned)
    with mpmath.workdps(40):
        for i in range(n):
            truth = _exactly(words, i)
            norm = mpmath.sqrt(sum(x * x for x in truth))
            for j in range(d):
                assert abs(3 * truth[j] - out[i, j]) < bound[i] / 4
            errors = [5 * truth[j] / norm - turned[i, j] for j in range(d)]
            assert mpmath.sqrt(sum(e * e for e in errors)) < 5 * relative[i] / 4
            # and the bounds are not idle
            assert bound[i] < 2.0**-38
            assert relative[i] < 2.0**-34 * max(1.0, float(5 / norm))


def test_lazy_rows_enclose_the_floats():
    words = NormalWords.new(3, 5, secure_source())
    out = np.empty((3, 5))
    words.floats(ALL, 1.0, out)
    arithmetic = Arithmetic(128)
    for i in range(3):
        row = words.row(i)
        coordinates = row.coordinates(arithmetic)
        for j in range(5):
            low, high = ends(coordinates[j])
            assert float(high - low) < 1e-15
            assert float(low) == pytest.approx(out[i, j], abs=1e-12)
            assert ends(row.coordinate(j, arithmetic)) == (low, high)
        low, high = ends(row.square(arithmetic))
        assert float(low) == pytest.approx(float(np.sum(out[i] ** 2)), rel=1e-12)


def test_a_refined_row_lies_within_the_row():
    row = NormalWords.new(1, 4, secure_source()).row(0)
    finer = row.refined(secure_source())
    coarse, fine = Arithmetic(140), Arithmetic(260)
    for a, b in zip(row.coordinates(coarse), finer.coordinates(fine), strict=True):
        assert ends(a)[0] <= ends(b)[0] <= ends(b)[1] <= ends(a)[1]


@pytest.mark.parametrize("word", [0, 1, 2**64 - 1])
def test_words_of_which_floats_know_nothing(word):
    with np.errstate(all="ignore"):
        words = NormalWords.new(1, 4, WordSource([word, 2**62, 5, 9]))
        bound = words.directions(ALL, np.ones(1), np.empty((1, 4)))
    assert not bound[0] < 2.0**-30


@pytest.mark.parametrize("exponent", [6, 10, 20, 35, 50])
@pytest.mark.parametrize("place", [0, 1])
def test_rows_with_a_word_of_a_far_tail_are_within_their_bounds(exponent, place):
    # its U is known to few digits, and the other pair of the row is as usual
    radii = [2**63 + 12345, 2**63 + 12345]
    radii[place] = 2**exponent
    words = NormalWords.new(1, 4, WordSource([*radii, 2**61, 3 * 2**60]))
    out, turned = np.empty((1, 4)), np.empty((1, 4))
    bound = words.floats(ALL, 3.0, out)[0]
    relative = words.directions(ALL, np.ones(1), turned)[0]
    with mpmath.workdps(40):
        for end in (0, 1):
            truth = []
            for word, angle in zip(radii, (2**61, 3 * 2**60), strict=True):
                r = mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(word + end) / 2**64))
                a = 2 * mpmath.pi * mpmath.mpf(angle) / 2**64
                truth += [r * mpmath.cos(a), r * mpmath.sin(a)]
            norm = mpmath.sqrt(sum(x * x for x in truth))
            assert max(abs(3 * t - x) for t, x in zip(truth, out[0], strict=True)) <= bound
            errors = [t / norm - x for t, x in zip(truth, turned[0], strict=True)]
            assert mpmath.sqrt(sum(e * e for e in errors)) <= relative


@pytest.mark.parametrize("d", [1, 2, 5, 50])
def test_bounds_are_those_of_the_proof(d):
    # cap_mechanism.md, section 4; a far tail, where theta counts, and short radii in some rows
    n, n_pairs = 30, (d + 1) // 2
    radius, angle = secure_source().words(2 * n * n_pairs).reshape(2, n, n_pairs)
    radius[:5, 0] >>= np.uint64(30)
    radius[5:10] |= np.uint64(15 << 60)
    words = NormalWords(d, radius, angle)
    u = np.multiply((radius >> np.uint64(1)).view(np.int64), 2.0**-63, dtype=np.float64)
    r = np.sqrt(-2.0 * np.log(u))
    spread = 2.0**-52 + 2.0**-62 / u.min(axis=1)
    relative = 2.0**-47 + 2.0**-50 + 2.0**-51
    one = 2.0 * spread / r.min(axis=1) + relative * r.max(axis=1)
    np.testing.assert_allclose(words.floats(ALL, 3.0, np.empty((n, d))), 3.0 * one, rtol=1e-9)
    whole = np.linalg.norm(r, axis=1)
    row = 2.0 * spread * np.sqrt(n_pairs) / r.min(axis=1) + 1.001 * relative * whole
    if d % 2:
        r[:, -1] *= np.abs(turns(angle[:, -1])[0])
    rho = np.linalg.norm(r, axis=1)
    direction = 2.0 * row / rho + (0.5 * n_pairs + 8.0) * 2.0**-53
    found = words.directions(ALL, np.ones(n), np.empty((n, d)))
    np.testing.assert_allclose(found, direction, rtol=1e-9)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_one_word_at_an_end_is_enough_to_draw_more(word):
    radii = [LazyUniform(2**60), LazyUniform(word)]
    assert not LazyNormals(4, radii, [LazyUniform(5)] * 2).is_interior
    assert LazyNormals(4, radii[:1] * 2, [LazyUniform(word)] * 2).is_interior
