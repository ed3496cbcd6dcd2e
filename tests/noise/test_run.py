"""Places in a run of geometrically falling weight are drawn exactly."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.noise import secure_source, seeded_source
from tacit.noise.run import Run
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
