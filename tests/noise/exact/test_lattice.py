import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

from tacit.noise import secure_source, seeded_source
from tacit.noise.exact import lattice
from tacit.noise.exact.interval_arithmetic import LazyUniform
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.gaussian import GaussianLaw, gaussian
from tacit.noise.laplace import LaplaceLaw, laplace
from tests.noise.helpers import WordSource, bounded, same_low_bits

LAWS = [GaussianLaw(), LaplaceLaw()]


def _ids(law):
    return type(law).__name__


def _exact_tail(law, x):
    """P(Z > x) for any real x, in mpmath, from its own formula."""
    if isinstance(law, GaussianLaw):
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2
    return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2


@pytest.mark.parametrize("noise_std", [1.0, 1.999, 2.0, 3e-8, 2.0**-500, 2.0**500, 7e60])
def test_the_spacing_is_a_power_of_two_a_thousandth_of_the_noise(noise_std):
    spacing = lattice_spacing(noise_std)
    assert math.frexp(spacing)[0] == 0.5
    assert 2**10 <= noise_std / spacing < 2**11


@pytest.mark.parametrize("noise_std", [0.0, -1.0, 2.0**-501, 2.0**501, math.inf, math.nan])
def test_noise_too_small_or_large_for_doubles_is_refused(noise_std):
    with pytest.raises(ValueError, match=r"noise_std .* other units"):
        lattice_spacing(noise_std)


# --- the margins the exactness rests on --------------------------------------------------------


def test_ndtri_is_far_within_its_margin():
    rng = np.random.default_rng()
    tails = np.concatenate(
        [2.0 ** -rng.uniform(1, 24, 300), rng.uniform(0, 0.5, 190), 0.5 - 2.0 ** -np.arange(2, 12)]
    )
    with mpmath.workdps(40):
        for tail in tails:
            # One Newton step from the float is exact to twice its digits.
            z = mpmath.mpf(float(-ndtri(tail)))
            error = (mpmath.erfc(z / mpmath.sqrt(2)) / 2 - mpmath.mpf(float(tail))) / (
                mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)
            )
            assert abs(error) < 2.0**-44 * (1 + abs(z)), tail


def test_log_is_far_within_its_margin():
    tails = 2.0 ** -np.random.default_rng().uniform(1, 24, 500)
    with mpmath.workdps(40):
        for tail, z in zip(tails, LaplaceLaw().quantile(tails), strict=True):
            assert abs(mpmath.mpf(float(z)) + mpmath.log(2 * mpmath.mpf(float(tail)))) < 2.0**-44


@pytest.mark.parametrize("law", LAWS, ids=_ids)
def test_the_table_is_within_its_margin_on_every_segment(law):
    table = lattice._inversion_table(law)
    segments = np.arange(4096, dtype=np.uint64)
    kept = (segments >= 32) & (segments < 4096 - 32)
    for low in [0, 1, (1 << 52) - 1, *(i << 47 for i in range(1, 32))]:
        words = (segments << np.uint64(52)) | np.uint64(low)
        z, x, spare = np.empty((3, words.size))
        lattice._table_quantile(words, table, z, x, spare)
        assert np.isnan(z[~kept]).all()
        upper = words < np.uint64(1 << 63)
        tail = np.where(upper, words, ~words) * 2.0**-64 + 2.0**-65
        exact = law.quantile(tail) * np.where(upper, 1, -1)
        assert np.max(np.abs(z - exact)[kept]) < lattice._TABLE_MARGIN * 0.75


def test_the_third_derivatives_are_bounded_as_the_proof_says():
    tails = np.concatenate([np.linspace(1e-3, 0.5, 5000), 2.0 ** -np.linspace(1, 60, 500)])
    z = -ndtri(tails)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    assert np.max((1 + 2 * z**2) / density**3 * tails**3) < 2.0  # Laplace: exactly 2


# --- the three paths agree ---------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=_ids)
def test_every_path_gives_the_same_answer(law, monkeypatch):
    words = secure_source().words(1500)
    rng = np.random.default_rng()
    value = rng.standard_normal(1500) * 10.0 ** rng.integers(-3, 12, 1500)
    spacing = lattice_spacing(1.7)

    def run():
        return lattice.add_rounded(value, 1.7, spacing, law, WordSource(words, secure_source()))

    by_table = run()
    monkeypatch.setattr(lattice, "_TABLE_MARGIN", 1.0)  # nothing is certain by the table
    by_floats = run()
    monkeypatch.setattr(lattice, "_SMALLEST_FAST_TAIL", 1.0)  # nor by floats
    exactly = run()
    assert np.array_equal(by_table, by_floats)
    assert np.array_equal(by_table, exactly)


def test_a_wrong_table_would_be_noticed(monkeypatch):
    # The same comparison fails when the table errs by more than its margin.
    words, law, spacing = secure_source().words(4000), GaussianLaw(), lattice_spacing(1.7)
    good = lattice.add_rounded(np.zeros(4000), 1.7, spacing, law, WordSource(words))
    shifted = tuple(column + 2.0**-13 for column in lattice._inversion_table(law))
    monkeypatch.setattr(lattice, "_inversion_table", lambda _: shifted)
    assert not np.array_equal(
        lattice.add_rounded(np.zeros(4000), 1.7, spacing, law, WordSource(words)), good
    )


@pytest.mark.parametrize("law", LAWS, ids=_ids)
@pytest.mark.parametrize("word", [0, 1, 2**40, 2**63 - 1, 2**63, 2**64 - 2**40, 2**64 - 1])
def test_extreme_words_are_decided_exactly(law, word):
    source = WordSource([word], then=seeded_source(word % 97))
    result = lattice.add_rounded(0.3, 1.0, 2.0**-10, law, source)
    # The noise must lie in the part of the real line that this word stands for.
    with mpmath.workprec(300):
        z_low, z_high = ((mpmath.mpf(result) + s * 2.0**-11 - mpmath.mpf(0.3)) for s in (-1, 1))
        least, most = _exact_tail(law, z_high), _exact_tail(law, z_low)
        assert least < mpmath.mpf(word + 1) / 2**64
        assert most > mpmath.mpf(word) / 2**64


@pytest.mark.parametrize("law", LAWS, ids=_ids)
@pytest.mark.parametrize("offset", [0, 1, -1, 2**9])
def test_values_on_the_edge_of_rounding_are_resolved(law, offset):
    # A value such that value + noise is within 2^-53 of a boundary for this word.
    word = 0x3123456789ABCDEF
    width, spacing = 1.0, 2.0**-10
    with mpmath.workdps(200):
        tail = mpmath.mpf(word) / 2**64
        z = mpmath.findroot(
            lambda x: _exact_tail(law, x) - tail, float(law.quantile(np.array([float(tail)]))[0])
        )
        edge = mpmath.mpf(0.5) * spacing - width * z
        value = math.nextafter(float(edge), math.inf if offset > 0 else -math.inf)
        value += offset * 2.0**-60
        source = WordSource([word], then=seeded_source(5))
        result = lattice.add_rounded(value, width, spacing, law, source)
        # Recompute from all the bits that were drawn.
        bits = word
        replay = seeded_source(5)
        for _ in range(source.n_extra):
            bits = (bits << 64) | int(replay.words(1)[0])
        n_bits = 64 * (1 + source.n_extra)
        for numerator in (bits, bits + 1):
            tail = mpmath.mpf(numerator) / mpmath.mpf(2) ** n_bits
            z = mpmath.findroot(lambda x, t=tail: _exact_tail(law, x) - t, z)
            k = mpmath.floor((mpmath.mpf(value) + width * z) / spacing + mpmath.mpf(0.5))
            assert float(k) * spacing == result


def test_more_bits_are_drawn_when_the_word_does_not_decide():
    # U = 1/2 exactly at the boundary between two points: Z near 0, value at a half point.
    source = WordSource([2**63 - 1], then=WordSource([2**63]))
    result = lattice.add_rounded(0.5 * 2.0**-10, 1.0, 2.0**-10, GaussianLaw(), source)
    assert source.n_extra == 0  # the whole interval lies on one side of 0
    assert result == 2.0**-10
    near = math.nextafter(0.5 * 2.0**-10, 0.0)  # now the boundary is inside a word's interval
    tail = 0.5 - (0.5 * 2.0**-10 - near) / math.sqrt(2 * math.pi)
    word = int(Fraction(tail) * 2**64)
    outcomes = set()
    for candidate in range(word - 64, word + 64):
        source = WordSource([candidate], then=seeded_source(1))
        lattice.add_rounded(near, 1.0, 2.0**-10, GaussianLaw(), source)
        outcomes.add(source.n_extra)
    assert outcomes == {0, 1}


# --- what floats leave open ---------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=_ids)
@pytest.mark.parametrize("ratio", [2.0**-4, 1500.0])
@pytest.mark.parametrize("side", [1, -1])
def test_floats_decide_only_beyond_their_margins(law, ratio, side, monkeypatch):
    exactly, by_floats = [], []

    def decide(words, *rest):
        by_floats.append(len(words))
        return np.zeros(len(words))

    def decide_exactly(uniform, guess, *rest):
        exactly.append(guess)
        return guess

    monkeypatch.setattr(lattice, "_decide_exactly", decide_exactly)
    words = np.linspace(2.0**50, 2.0**64 - 2.0**50, 40).astype(np.uint64)
    z, _ = lattice._float_quantile(words, law)
    # A position this close to the middle between two points may be wrong (the proof's margins).
    margin = ratio * 2.0**-34 + 2.0**-36
    for close, n in ((0.9, 40), (1.1, 0)):
        fraction = np.rint(ratio * z) + side * (0.5 - close * margin) - ratio * z
        lattice._decide(words, fraction, ratio, law, None)
        assert len(exactly) == n
        exactly.clear()
    monkeypatch.setattr(lattice, "_decide", decide)
    margin = ratio * 2.0**-21 + 2.0**-36
    for close, n in ((0.9, 40), (1.1, 0)):
        buffers = np.empty((4, 40))
        buffers[0] = (np.arange(40) + side * (0.5 - close * margin)) / ratio
        lattice._add_block(np.zeros(40), np.empty(40), ratio, 1.0, law, buffers, words, None)
        assert by_floats == [n]
        by_floats.clear()


@pytest.mark.parametrize("law", LAWS, ids=_ids)
@pytest.mark.parametrize("k", [0, 1, 4])
def test_words_beside_a_boundary_are_told_apart(law, k):
    with mpmath.workprec(300):
        tail = _exact_tail(law, mpmath.mpf(k) + 0.5)
        above = int(mpmath.floor(tail * 2**64))
        mirrored = int(mpmath.floor((1 - tail) * 2**64))
    # Z > k + 1/2, and Z > -(k + 1/2), if U is below the tail; open if the tail is in its interval
    for point, word in ((k, above), (-k - 1, mirrored)):
        found = [lattice._is_above(LazyUniform(word + i), point, 0.0, 1.0, law) for i in (-1, 0, 1)]
        assert found == [True, None, False]
    at_zero = [lattice._is_above(LazyUniform(2**63 + i), 0, 0.5, 1.0, law) for i in (-1, 0)]
    assert at_zero == [True, False]
    # Whatever the first guess.
    for word in (above - 1, above + 1, mirrored - 1, mirrored + 1):
        answers = {
            lattice._decide_exactly(LazyUniform(word), guess, 0.0, 1.0, law, None)
            for guess in range(-k - 4, k + 5)
        }
        assert len(answers) == 1


# --- the law, by enumeration -------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=_ids)
@pytest.mark.parametrize("value", [0.0, 0.37])
def test_enumeration_on_a_tiny_lattice(law, value):
    """All words with the same low 52 bits, one for each of 4096 equally likely segments.

    On a lattice of width / spacing = 2, the number of segments that give k is within one of
    4096 P(k), because the segments are cut by the boundaries between points.
    """
    words = (np.arange(4096, dtype=np.uint64) << np.uint64(52)) | np.uint64(1 << 51)
    result = lattice.add_rounded(
        np.full(4096, value), 2.0, 1.0, law, WordSource(words, secure_source())
    )
    points, counts = np.unique(result, return_counts=True)
    for point, count in zip(points, counts, strict=True):
        low, high = (point - 0.5 - value) / 2.0, (point + 0.5 - value) / 2.0
        probability = float(_exact_tail(law, mpmath.mpf(low)) - _exact_tail(law, mpmath.mpf(high)))
        assert abs(count - 4096 * probability) <= 1.0


# --- attacks -----------------------------------------------------------------------------------

INPUTS = [0.0, 1e6 + math.pi, -1 / 3, 2.0**-30]


@pytest.mark.parametrize("mechanism", [gaussian, laplace])
def test_all_outputs_lie_on_one_lattice_whatever_the_value(mechanism):
    width = 1.0 if mechanism is gaussian else math.sqrt(2)
    spacing = lattice_spacing(width)
    outputs = [
        mechanism(bounded(np.full(20_000, v), norm=_norm(mechanism)), 1.0).value for v in INPUTS
    ]
    for output in outputs:
        assert np.array_equal(output / spacing, np.rint(output / spacing))
    for i in range(1, len(outputs)):
        # Centred by a common multiple of a large power of two, so that only low bits compare.
        assert same_low_bits(outputs[0], outputs[i])


def test_the_same_check_catches_float_noise_added_directly():
    rng = np.random.default_rng()
    first, second = (v + rng.standard_normal(20_000) for v in INPUTS[:2])
    assert not same_low_bits(first, second)


def test_the_same_check_catches_a_coarser_lattice_for_one_input():
    def mutated(value):
        output = gaussian(bounded(np.full(20_000, value)), 1.0).value
        return np.rint(output * 2**8) / 2**8 if value > 1 else output

    assert not same_low_bits(mutated(0.0), mutated(INPUTS[1]))


def test_the_same_points_are_reached_from_neighbouring_values():
    # Mironov's holes: points near the values that one input reaches and the other cannot.
    spacing = 2.0**-3
    seen = []
    for value in (0.0, 1.0):
        output = np.asarray(
            lattice.add_rounded(
                np.full(400_000, value), 1.0, spacing, LaplaceLaw(), secure_source()
            )
        )
        seen.append(set(output[np.abs(output - 0.5) < 4.0].tolist()))
    assert seen[0] == seen[1]


def test_a_zero_does_not_tell_the_sign_of_the_value():
    for value in (-0.0, -1e-300, -1e-5):
        output = np.asarray(
            lattice.add_rounded(
                np.full(50_000, value), 1.0, 2.0**-2, GaussianLaw(), secure_source()
            )
        )
        assert (output == 0).any()
        assert not np.signbit(output[output == 0]).any()


def test_huge_values_keep_their_noise_path():
    # Halves of the lattice are not doubles here; nothing breaks and nothing is slow.
    value = np.full(100_000, 2.0**70)
    output = lattice.add_rounded(value, 1.0, 2.0**-10, GaussianLaw(), secure_source())
    assert np.array_equal(output, value)


def test_shapes_and_blocks(monkeypatch):
    monkeypatch.setattr(lattice, "_BLOCK", 7)
    value = np.arange(60.0).reshape(3, 4, 5)[:, ::2]
    output = gaussian(bounded(value), 1e-3).value
    assert output.shape == value.shape
    assert np.max(np.abs(output - value)) < 0.01
    assert isinstance(gaussian(bounded(3.0), 1e-3).value, float)


def _norm(mechanism):
    from tacit.noise import Norm

    return Norm.L2 if mechanism is gaussian else Norm.L1


@pytest.mark.parametrize("law", LAWS, ids=_ids)
def test_the_float_function_decides_no_tail_below_that_of_the_proof(law, monkeypatch):
    exactly = []

    def decide_exactly(uniform, guess, *rest):
        exactly.append(uniform.numerator)
        return guess

    monkeypatch.setattr(lattice, "_decide_exactly", decide_exactly)
    # the margins are proved for tails from 2^-24 on; a word's tail is the middle of its interval
    below, above = 2**40 - 1, 2**40
    for tail, left in ((below, True), (above, False)):
        words = np.array([tail, 2**64 - 1 - tail], dtype=np.uint64)
        z, _ = lattice._float_quantile(words, law)
        # at a point of the lattice, as far from the middle between two as can be
        lattice._decide(words, np.rint(z) - z, 1.0, law, None)
        assert exactly == ([int(word) for word in words] if left else [])
        exactly.clear()
