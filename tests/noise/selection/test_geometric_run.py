"""Places in a run of geometrically falling weight are drawn exactly."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.noise import secure_source, seeded_source
from tacit.noise.selection.geometric_run import _SHARE_ERROR, SERIES_ERROR, Run
from tests.noise.helpers import ACCEPT, WordSource


@pytest.mark.parametrize("fall", [0.0, 1e-300, 1e-12, 0.1, 3.0, 1e5])
@pytest.mark.parametrize("n", [1, 2, 1000])
@pytest.mark.parametrize("word", [0, 1, 2**62, 2**63, 2**64 - 1])
def test_places_in_a_run(fall, n, word):
    source = WordSource([word], seeded_source(2))
    m = Run(Fraction(0), Fraction(fall), n).draw(source)
    bits, more = word, seeded_source(2)
    for _ in range(source.n_extra):
        bits = (bits << 64) | int(more.words(1)[0])
    with mpmath.workprec(4000):
        share = mpmath.mpf(bits) / mpmath.mpf(2) ** (64 * (1 + source.n_extra))

        def before(k):
            if fall == 0.0:
                return mpmath.mpf(k) / n
            return mpmath.expm1(-mpmath.mpf(fall) * k) / mpmath.expm1(-mpmath.mpf(fall) * n)

        assert 0 <= m < n
        assert before(m) <= share < before(m + 1)


def test_frequencies_within_a_run():
    run, source = Run(Fraction(0), Fraction(0.4), 6), secure_source()
    counts = np.bincount([run.draw(source) for _ in range(5000)], minlength=6)
    weights = np.exp(-0.4 * np.arange(6))
    assert chisquare(counts, 5000 * weights / weights.sum()).pvalue > ACCEPT


# What exactness rests on


def test_the_errors_are_those_of_the_proofs():
    # selection_on_a_line.md, section 3: below 2^-38.6; selection_in_a_ball.md, section 3
    assert SERIES_ERROR == 2.0**-38
    assert _SHARE_ERROR == 2.0**-41


@pytest.mark.parametrize("fall", [0.0, 0.05, 3.0])
def test_floats_decide_a_place_only_away_from_its_ends(fall):
    run = Run(Fraction(0), Fraction(fall), 8)
    weights = np.exp(-fall * np.arange(8))
    ends_of = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    error = 2.0**-41
    for m in range(8):
        start, stop = ends_of[m], ends_of[m + 1]
        if stop - start < 8 * error:
            continue
        assert run._surely(m, (start + stop) / 2)
        if m > 0:
            assert run._surely(m, start + 1.5 * error)
            assert not run._surely(m, start + 0.5 * error)
            assert not run._surely(m, start - 1.5 * error)
        if m + 1 < 8:
            assert run._surely(m, stop - 1.5 * error)
            assert not run._surely(m, stop - 0.5 * error)
            assert not run._surely(m, stop + 1.5 * error)


@pytest.mark.parametrize("fall", [0.0, 0.3])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_wrong_guess_does_not_change_the_place(fall, n, monkeypatch):
    run = Run(Fraction(0), Fraction(fall), n)
    for word in (0, 2**61, 2**63, 3 * 2**62, 2**64 - 1):
        place = run.draw(WordSource([word], seeded_source(1)))
        for guess in range(n):
            with monkeypatch.context() as patch:
                patch.setattr(Run, "_guess", lambda self, share, guess=guess: guess)
                assert run.draw(WordSource([word], seeded_source(1))) == place
