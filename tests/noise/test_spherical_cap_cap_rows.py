import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import betaincc, gammaln
from scipy.stats import beta, binom, kstest

from tacit.noise import Cap, prepare_cap, secure_source, seeded_source, spherical_cap
from tacit.noise.exact.gaussian_pairs import LOG_ERROR, TURN_ERROR, LazyNormals
from tacit.noise.exact.interval_arithmetic import GUARD_BITS, Arithmetic, LazyUniform, ends
from tacit.noise.exact.sphere_coordinate import Latitude
from tacit.noise.prepared import apply_rows, reflect_row, release_rows
from tacit.noise.spherical_cap import CapWords, LazyCapRow, _is_positive, _kernel_margin, _reflected
from tests.noise.helpers import ACCEPT, REJECT, WordSource

N = 100_000


def _law(d):
    return Cap(d, 0.7 / math.sqrt(d), 0.8) if d > 1 else Cap(1, 1.0, 0.8)


def _unit(d):
    u = np.random.default_rng().standard_normal(d)
    return u / np.linalg.norm(u)


def _draw(law, u, n=N, length=1.0):
    """Return n released vectors for one value of norm ``length``, out of 1."""
    rows = prepare_cap(n, law.d, law, secure_source())
    # the float norm of u may pass 1 by a unit or two
    return release_rows(np.tile(u * length, (n, 1)), rows, 1.0, law.event).value * law.spacing


def _tail(d, t):
    upper = 0.5 * betaincc(0.5, (d - 1) / 2, np.minimum(1.0, t * t))
    return np.where(t >= 0, upper, 1.0 - upper)


def _fits(t, tail, law, gamma=1.0, p=1.0):
    """Return the p-value of <V, u> being ``t``, for a law whose gamma and p are multiplied."""
    gamma, p = law.gamma * gamma, law.p * p
    q = float(_tail(law.d, np.float64(gamma)))
    rank = np.where(t < gamma, (1 - p) * (1 - tail) / (1 - q), 1 - p * tail / q)
    return kstest(rank, "uniform").pvalue


@pytest.mark.parametrize("d", [2, 3, 10, 50])
def test_the_law_of_the_first_coordinate(d):
    law, u = _law(d), _unit(d)
    t = _draw(law, u) @ u
    tail = _tail(d, t)
    assert _fits(t, tail, law) > ACCEPT
    # the test would see a wrong gamma or p
    for wrong in (0.9, 1.1):
        assert _fits(t, tail, law, gamma=wrong) < REJECT
    for wrong in (0.97, 1.03):
        assert _fits(t, tail, law, p=wrong) < REJECT


@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_a_wrong_share_of_the_sphere_is_seen(wrong, monkeypatch):
    law, u = _law(10), _unit(10)
    low, high = law.enclose_share(200)
    share = tuple(end * Fraction(wrong) for end in (low, high))
    monkeypatch.setattr(Cap, "enclose_share", lambda self, precision: share)
    t = _draw(law, u) @ u
    assert _fits(t, _tail(10, t), law) < REJECT


def test_one_coordinate_is_randomised_response():
    law = _law(1)
    for u in (1.0, -1.0):
        v = _draw(law, np.array([u]))[:, 0]
        assert set(np.unique(v)) == {-1.0, 1.0}
        count = int(np.sum(v == u))
        assert binom(N, 0.8).cdf(count) > ACCEPT
        assert binom(N, 0.8).sf(count) > ACCEPT
        assert binom(N, 0.8 * 0.97).sf(count) < REJECT


@pytest.mark.parametrize("d", [2, 3, 10, 50])
def test_the_probability_of_the_cap(d):
    law, u = _law(d), _unit(d)
    count = int(np.sum(_draw(law, u) @ u >= law.gamma))
    assert min(binom(N, law.p).cdf(count), binom(N, law.p).sf(count)) > ACCEPT
    for wrong in (0.97, 1.03):
        other = binom(N, law.p * wrong)
        assert min(other.cdf(count), other.sf(count)) < REJECT


@pytest.mark.parametrize("d", [2, 3, 10, 50])
def test_the_rest_of_the_direction_is_uniform(d):
    law, u = _law(d), _unit(d)
    v = _draw(law, u)
    t = v @ u
    # coordinates in an orthonormal basis of what is orthogonal to u
    basis = np.linalg.svd(u[None])[2][1:]
    rest = v @ basis.T
    assert np.allclose(np.linalg.norm(v, axis=1), 1.0, atol=1e-5)
    rest /= np.linalg.norm(rest, axis=1)[:, None]
    high = t > np.median(t)
    for part in (rest[high], rest[~high], rest[t < law.gamma]):
        bound = 7 / math.sqrt(len(part))
        assert np.max(np.abs(part.mean(axis=0))) < bound
        if d > 2:
            one = beta((d - 2) / 2, (d - 2) / 2)
            for j in {0, (d - 1) // 2, d - 2}:
                assert kstest((1 + part[:, j]) / 2, one.cdf).pvalue > ACCEPT
            signs = np.sign(part)
            assert np.max(np.abs(signs.T @ signs / len(part) - np.eye(d - 1))) < bound
    if d > 2:
        assert kstest((1 + rest[:, 0] * 1.1) / 2, one.cdf).pvalue < ACCEPT


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("length", [0.0, 0.5, 1.0])
def test_the_mean_is_a_multiple_of_the_value(d, length):
    law, u = _law(d), _unit(d)
    n = 400_000
    v = _draw(law, u, n, length)
    p, q = law.p, law.share
    if d == 1:
        m = 2 * p - 1
    else:
        # kappa = (1 - gamma^2)^((d-1)/2) Gamma(d/2) / (sqrt(pi) Gamma((d-1)/2) (d-1))
        log = gammaln(d / 2) - gammaln((d - 1) / 2) + (d - 1) / 2 * math.log1p(-(law.gamma**2))
        m = math.exp(log) / (math.sqrt(math.pi) * (d - 1)) * (p / q - (1 - p) / (1 - q))
    error = 6 / math.sqrt(n)
    assert np.max(np.abs(v.mean(axis=0) - m * length * u)) < error
    if length == 1.0:
        assert abs(v.mean(axis=0) @ u - 0.9 * m) > error


@pytest.mark.parametrize("d", [1, 2, 10])
def test_no_event_is_likelier_than_epsilon_allows(d):
    law, u = _law(d), _unit(d)
    here, there = (_draw(law, w, 300_000) @ u for w in (u, -u))
    # opposite caps: seen at u's cap, or at u's rest
    start = law.gamma if d > 1 else 0.0
    for inside in (lambda t: t >= start, lambda t: t <= -start):
        a, b = (np.mean(inside(t)) for t in (here, there))
        slack = 7 * math.sqrt(1 / (a * 300_000) + 1 / (b * 300_000))
        assert abs(math.log(a / b)) <= law.epsilon + slack
        # opposite caps reach it, up to how much of the other's rest they fill
        assert abs(math.log(a / b)) >= law.epsilon - slack


@pytest.mark.parametrize("d", [2, 3, 4, 10, 50])
def test_floats_are_far_within_their_margins(d):
    n = 25
    law = _law(d)
    rows = prepare_cap(n, d, law, secure_source())
    arithmetic = Arithmetic(300)
    q = arithmetic.between(*law.enclose_share(250))
    for i in range(n):
        row = rows.words.row(law, i)
        side = q if row.inside else 1 - q
        # the lowest number of the word's interval, known to 180 more bits
        depth = LazyUniform(row.depth.numerator << 180, 244)
        t, r = Latitude(d).enclose_quantile(side * arithmetic.uniform(depth), arithmetic)
        rest = r / arithmetic.context.sqrt(row.normals.square(arithmetic))
        v0 = [t if row.inside else -t] + [g * rest for g in row.normals.coordinates(arithmetic)]
        errors = [
            abs(float(sum(ends(x)) / 2 - Fraction(float(f))))
            for x, f in zip(v0, rows.floats[i], strict=True)
        ]
        margin = rows.margins[i] - _kernel_margin(law)
        assert math.hypot(*errors) / law.spacing < margin / 3
    # In two dimensions a direction close to a pole has a wide margin: one row in a thousand.
    assert np.median(rows.margins - _kernel_margin(law)) < 1e-5


def test_broken_floats_are_seen():
    law = _law(10)
    rows = prepare_cap(40, 10, law, secure_source())
    values = np.tile(_unit(10), (40, 1))
    steps = apply_rows(values, rows, 1.0)
    rows.floats[:] *= 1.0 + 1e-6
    rows.margins[:] = 0.0
    broken = apply_rows(values, rows, 1.0)
    assert not np.array_equal(steps, broken)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_extreme_words_go_the_exact_way(d):
    law = _law(d)
    n_pairs = d // 2
    for word in (0, 1, 2**64 - 1, 2**63):
        words = [word] * (3 + 2 * n_pairs)
        rows = prepare_cap(1, d, law, WordSource(words, seeded_source(5)))
        steps = apply_rows(np.full((1, d), 0.5 / d), rows, 1.0)[0]
        assert np.linalg.norm(steps * law.spacing) == pytest.approx(1.0, abs=1e-5)
        # in the cap about u or about -u, or in the rest, as the choice word says
        t = float(steps @ np.full(d, law.spacing / math.sqrt(d)))
        inside = word < law.p * 2.0**64
        sign = 1 if word * 2.0**-64 < 0.5 + 0.25 / math.sqrt(d) else -1
        assert t * sign >= law.gamma - 1e-5 if inside else t * sign <= law.gamma + 1e-5


def test_the_exact_path_draws_more_bits_when_it_must():
    law = Cap(3, 0.0, 0.75)
    words = [0, 0, 5, 3 << 62, 0]  # U = 0: the pole, where 64 bits leave much open
    source = WordSource(words, seeded_source(0))
    rows = prepare_cap(1, 3, law, source)
    assert rows.margins[0] == np.inf
    rows.exactly(0, np.array([0.0, 0.0, 1.0]), 1.0)
    assert source.n_extra > 0


def test_the_coin_is_decided_exactly():
    norm, half = Fraction(1), Fraction(1, 4)  # ||value||^2 = 1/4: + with probability 3/4
    assert _is_positive(LazyUniform((3 << 62) - 1), half, norm) is True
    assert _is_positive(LazyUniform(3 << 62), half, norm) is False
    assert _is_positive(LazyUniform((1 << 63) - 1), Fraction(0), norm) is True
    assert _is_positive(LazyUniform(1 << 63), Fraction(0), norm) is False
    # an irrational threshold inside the word's interval stays open
    assert _is_positive(LazyUniform(2**64 - 1), Fraction(1) - Fraction(1, 2**70), norm) is None
    assert _is_positive(LazyUniform(2**64 - 1), Fraction(1), norm) is True


def test_underflow_does_not_change_the_reflection():
    law = _law(3)
    value = np.array([[-5e-324, 1e300, 1e299]])
    for _ in range(10):
        rows = prepare_cap(1, 3, law, secure_source())
        steps = apply_rows(value, rows, 2e300)
        rows.margins[:] = np.inf
        assert np.array_equal(rows.exactly(0, value[0], 2e300), steps[0])


def test_probabilities_are_whole_words():
    law = Cap(2, 0.1, 0.7)
    words = CapWords.new(3, law, WordSource([0, int(0.7 * 2**64) - 1, int(0.7 * 2**64)] + [7] * 12))
    assert words.is_inside(law).tolist() == [True, True, False]
    assert [words.row(law, i).inside for i in range(3)] == [True, True, False]
    assert GUARD_BITS >= 32


def test_bad_arguments_are_refused_before_anything_is_drawn():
    class Never:
        is_secure = True

        def words(self, n):
            raise AssertionError("drawn")

    law = Cap(3, 0.2, 0.9)
    with pytest.raises(ValueError, match="d=4"):
        prepare_cap(2, 4, law, Never())
    with pytest.raises(ValueError, match="must be a Cap"):
        prepare_cap(2, 3, 0.9, Never())
    with pytest.raises(ValueError, match="n must be in"):
        prepare_cap(-1, 3, law, Never())
    assert prepare_cap(0, 3, law, secure_source()).floats.shape == (0, 3)


@pytest.mark.parametrize("d", [2, 3, 50, 400])
def test_margins_hold_all_that_the_proof_lists(d):
    law = _law(d)
    rows = prepare_cap(200, d, law, secure_source())
    r = np.linalg.norm(rows.floats[:, 1:], axis=1)
    first = Latitude(d).mills * Latitude(d).quantile_error
    rest = first * np.abs(rows.floats[:, 0]) / r + 2.0 * r * (LOG_ERROR + TURN_ERROR)
    terms = 16 + math.ceil(d / 16)
    kernel = (3 * terms + 28) * 2.0**-53
    known = rows.margins < 0.5
    assert np.all(rows.margins[known] >= ((first + rest + kernel) / law.spacing)[known])


@pytest.mark.parametrize("d", [2, 16, 50, 1000])
def test_the_kernel_is_far_within_its_margin(d):
    law = Cap(d, 0.0, 0.9)
    rows = prepare_cap(8, d, law, secure_source())
    arithmetic = Arithmetic(200)
    for i in range(8):
        value = np.random.default_rng().standard_normal(d) * 2.0 ** np.linspace(0, -40, d)
        if i % 2:
            value[0] = 1e-9
        norm = float(2 * np.linalg.norm(value))
        # finer steps show the float error itself
        shown = np.empty(d)
        reflect_row(value, rows.floats[i], 0.2, 0.0, 2.0**60, norm, shown)
        exact = [Fraction(float(x)) for x in value]
        v0 = [arithmetic.double(float(x)) for x in rows.floats[i]]
        truth = _reflected(v0, exact, arithmetic, 2**60, list(range(d)))
        error = max(abs(truth[j] - int(shown[j])) for j in range(d)) / 2.0**60 / law.spacing
        assert error < _kernel_margin(law) / 4


@pytest.mark.parametrize("d", [2, 3, 50, 400])
def test_margins_are_those_of_the_proof(d):
    # cap_mechanism.md, sections 3, 4 and 6
    law, n = _law(d), 200
    rows = prepare_cap(n, d, law, secure_source())
    inside, depth = rows.words.is_inside(law), rows.words.depth
    low, high = (float(end) for end in law.enclose_share(120))
    side, rest = np.where(inside, low, 1 - high), np.where(inside, 1 - high, low)
    tail = np.minimum(side * (depth * 2.0**-64), rest + side * (~depth * 2.0**-64))
    quantile = 2.0**-45 * max(1.0, d / 2.0**16)
    first = Latitude(d).mills * (2.0**-64 * side / tail + 2.0**-50 + quantile) + 2.0**-52
    t, r, t_error, r_error = spherical_cap._latitudes(rows.words, law)
    assert np.all(t_error >= first * (1 - 1e-12))
    np.testing.assert_allclose(
        r_error, t_error * (2.0 * np.abs(t) + t_error) / r + 2.0**-51, rtol=1e-12
    )
    direction = rows.words.normals.directions(slice(None), r, np.empty((n, d - 1)))
    kernel = (3 * (16 + math.ceil(d / 16)) + 32) * 2.0**-53 / law.spacing
    assert _kernel_margin(law) == kernel
    margins = 1.01 * (t_error + r_error + r * (direction + 2.0**-51)) / law.spacing + kernel
    known = margins < 0.5
    np.testing.assert_allclose(rows.margins[known], margins[known], rtol=1e-9)
    assert np.isinf(rows.margins[~known]).all()


def _row(d, depth, radius, angle):
    normals = LazyNormals(d - 1, [LazyUniform(radius)], [LazyUniform(angle)])
    return LazyCapRow(_law(d), True, LazyUniform(depth), LazyUniform(0), normals)


def test_words_at_the_ends_decide_nothing():
    value, usual = np.array([0.1, 0.2, 0.2]), 3 << 60
    assert len(_row(3, usual, usual, usual).decide(value, 1.0, [0, 1, 2])) == 3
    for end in (0, 2**64 - 1):
        assert _row(3, usual, end, usual).decide(value, 1.0, [0, 1, 2]) == {}
        assert _row(3, end, usual, usual).decide(value, 1.0, [0, 1, 2]) == {}
    # a quarter turn: the one Gaussian number may be 0, and has no direction
    assert _row(2, usual, usual, 1 << 62).decide(value[:2], 1.0, [0, 1]) == {}
