"""Noise drawn ahead of its value has the same law, hides one value, and says where it is from."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from tacit.noise import Norm, Source, draw_ahead, secure_source, seeded_source
from tacit.noise.bounded import Bounded
from tacit.noise.exact.lattice import Ahead, add_rounded, lattice_spacing
from tacit.noise.gaussian import GaussianLaw, gaussian
from tacit.privacy import Gaussian, NonPrivate, Relation
from tacit.testing import check_noise
from tacit.testing.noise import EvenlySpacedWords

Array = npt.NDArray[np.float64]


def bounded(n: int) -> Bounded:
    return Bounded(np.linspace(-3.0, 3.0, n), 1.0, Norm.L2, Relation.ADD_REMOVE)


def test_the_same_words_give_the_same_bits() -> None:
    value = np.random.default_rng(1).standard_normal(30_000)  # one block
    for words in (lambda: seeded_source(3), lambda: EvenlySpacedWords(30_000)):
        now = add_rounded(value, 2.0, 2.0**-9, GaussianLaw(), words())
        later = Ahead(value.size, GaussianLaw(), words())
        assert np.array_equal(
            now, add_rounded(value, 2.0, 2.0**-9, GaussianLaw(), later.source, later)
        )


def test_its_law() -> None:
    def sampler(value: Array, source: Source) -> Array:
        total = Bounded(value, 1.0, Norm.L2, Relation.ADD_REMOVE)
        release = gaussian(total, 2.0, ahead=draw_ahead(total.n_coordinates, source))
        assert isinstance(release.event, Gaussian | NonPrivate)
        return np.asarray(release.value)

    check_noise(sampler, lambda x: norm.cdf(x / 2.0), lattice_spacing(2.0), n_samples=40_000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_does_not_hide_its_value_by_the_same() -> None:
    ahead = draw_ahead(5)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            gaussian(bounded(5), 1.0, ahead=ahead)
        except ValueError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    gaussian(bounded(5), 1.0, ahead=ahead)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_cannot_be_copied(duplicate: Callable[[Ahead], object]) -> None:
    with pytest.raises(TypeError, match="hide two values"):
        duplicate(draw_ahead(5))


def test_it_hides_one_value() -> None:
    ahead = draw_ahead(5)
    gaussian(bounded(5), 1.0, ahead=ahead)
    with pytest.raises(ValueError, match="hidden a value already"):
        gaussian(bounded(5), 1.0, ahead=ahead)


def test_it_fits_its_value() -> None:
    with pytest.raises(ValueError, match="as many as the value has"):
        gaussian(bounded(4), 1.0, ahead=draw_ahead(5))


def test_it_has_its_own_source() -> None:
    with pytest.raises(ValueError, match="leave source out"):
        gaussian(bounded(4), 1.0, secure_source(), ahead=draw_ahead(4))
    seeded = draw_ahead(4, seeded_source(1))
    assert isinstance(gaussian(bounded(4), 1.0, ahead=seeded).event, NonPrivate)
