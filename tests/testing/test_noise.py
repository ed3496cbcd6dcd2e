from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from tacit.noise import Norm
from tacit.noise.bounded import Bounded
from tacit.noise.exact.lattice import lattice_spacing
from tacit.noise.gaussian import gaussian
from tacit.noise.laplace import laplace
from tacit.privacy import Relation
from tacit.testing import check_noise

STD = 3.0


def safe_gaussian(values, source):  # type: ignore[no-untyped-def]
    bounded = Bounded(values, 1.0, Norm.L2, Relation.ADD_REMOVE)
    return gaussian(bounded, STD, source).value


def cdf(x):  # type: ignore[no-untyped-def]
    return ndtr(x / STD)


def laplace_cdf(x):  # type: ignore[no-untyped-def]
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))


def test_gaussian_passes() -> None:
    check_noise(safe_gaussian, cdf, lattice_spacing(STD))


def test_laplace_passes() -> None:
    def sampler(values, source):  # type: ignore[no-untyped-def]
        # one value a release: Laplace noise of scale sensitivity / epsilon = 1 on each
        bounded = Bounded(values, 1.0, Norm.L1, Relation.ADD_REMOVE)
        return laplace(bounded, 1.0, source).value

    values = sampler(np.zeros(4000), None)
    spacings = np.diff(np.unique(values))
    check_noise(sampler, laplace_cdf, 2.0 ** np.floor(np.log2(spacings.min())))


def test_float_noise_added_directly_is_caught() -> None:
    rng = np.random.default_rng()

    def unsafe(values, source):  # type: ignore[no-untyped-def]
        return values + STD * rng.standard_normal(values.size)

    with pytest.raises(AssertionError, match="off the lattice"):
        check_noise(unsafe, cdf, lattice_spacing(STD))


def test_coarser_lattice_for_one_input_is_caught() -> None:
    def mutant(values, source):  # type: ignore[no-untyped-def]
        out = safe_gaussian(values, source)
        coarse = 16 * lattice_spacing(STD)
        return np.rint(out / coarse) * coarse if values[0] == 1.0 else out

    with pytest.raises(AssertionError, match=r"low bits of outputs around 1\.0"):
        check_noise(mutant, cdf, lattice_spacing(STD))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.9, 0.97, 1.03, 1.1])
def test_wrong_scale_is_caught(factor: float) -> None:
    def mutant(values, source):  # type: ignore[no-untyped-def]
        bounded = Bounded(values, factor, Norm.L2, Relation.ADD_REMOVE)
        return gaussian(bounded, STD, source).value

    with pytest.raises(AssertionError, match="stated law"):
        check_noise(mutant, cdf, lattice_spacing(factor * STD))


def test_enumeration_sees_a_scale_wrong_by_a_thousandth() -> None:
    def mutant(values, source):  # type: ignore[no-untyped-def]
        bounded = Bounded(values, 1.002, Norm.L2, Relation.ADD_REMOVE)
        return gaussian(bounded, STD, source).value

    with pytest.raises(AssertionError, match="enumerated"):
        check_noise(mutant, cdf, lattice_spacing(STD), inputs=(0.0,), n_samples=100_000)
