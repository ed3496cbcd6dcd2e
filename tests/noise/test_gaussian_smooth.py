"""Noise of a smooth sensitivity: as wide as stated, on a lattice of the greatest, rounded up."""

import math
import sys
from fractions import Fraction

import pytest

from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.gaussian import smooth_gaussian
from tacit.privacy import SmoothGaussian


@pytest.mark.parametrize("margin", [0.0, 2.5])
@pytest.mark.parametrize(
    ("sensitivity", "size"),
    [(0.3, 0.3), (0.0, 7.0 * 2.0**-20), (1e-9, 7.0 * 2.0**-20), (9.0, 7.0)],
)
def test_centre_width_and_lattice(margin, sensitivity, size, monkeypatch):
    seen = []

    def add(centre, width, spacing, law, words):
        seen.append((centre, width, spacing))
        return 4.0

    monkeypatch.setattr(sys.modules["tacit.noise.gaussian"], "add_rounded", add)
    event = SmoothGaussian(1.7, 0.01, margin)
    release = smooth_gaussian(0.5, sensitivity, 7.0, event)
    ((centre, width, spacing),) = seen
    product = Fraction(1.7) * Fraction(size)
    assert product < Fraction(width) < product * (1 + Fraction(1, 2**50))
    assert centre == 0.5 + margin * width
    # Whatever the data: the spacing follows from the greatest sensitivity.
    assert spacing == lattice_spacing(math.nextafter(1.7 * 7.0, math.inf))
    assert release.value == 4.0 + spacing / 2
    assert release.event == event


def test_the_noise_is_rounded_up(monkeypatch):
    widths = []

    def add(centre, width, spacing, law, words):
        widths.append(Fraction(width))
        return 0.0

    monkeypatch.setattr(sys.modules["tacit.noise.gaussian"], "add_rounded", add)
    # about half of these products are rounded down
    for k in range(1, 30):
        smooth_gaussian(0.5, 0.1 * k, 7.0, SmoothGaussian(0.7 / k, 0.01))
        assert widths[-1] >= Fraction(0.1 * k) * Fraction(0.7 / k)
