"""Atoms dominate the Gaussian mechanism's loss, closely, out to the last float."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from tacit.privacy.accounting.loss_distribution import GaussianAtoms, _moments, gaussian_atoms

MUS = (1e-3, 0.1, 1.0, 4.0)
# Quantiles of the loss, from where delta is nearly 1 to the least numbers.
QUANTILES = (-8.0, -3.0, 0.0, 2.0, 5.0, 8.0, 20.0, 36.9, 37.0)


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def excess(atoms: GaussianAtoms, mu: float, quantile: float) -> float:
    """Return delta of the atoms over delta of the Gaussian, less 1."""
    e = mu * mu / 2 + mu * quantile
    reached = -np.expm1(np.minimum(e - atoms.losses, 0.0))
    return (
        float(mpmath.mpf(float(atoms.masses @ reached) + atoms.at_infinity) / exact_delta(mu, e))
        - 1
    )


@pytest.mark.parametrize("mu", MUS)
def test_atoms_dominate_at_every_epsilon(mu: float) -> None:
    atoms = gaussian_atoms(mu, 0.0)
    for quantile in QUANTILES:
        assert excess(atoms, mu, quantile) >= 0.0, quantile
    for quantile in (-8.0, -3.0, 0.0, 2.0, 5.0, 8.0):
        assert excess(atoms, mu, quantile) <= 1e-4, quantile


@pytest.mark.parametrize("mu", MUS)
def test_nothing_below_the_grid_is_dropped(mu: float) -> None:
    atoms = gaussian_atoms(mu, 0.0)
    lowest = mpmath.ncdf((atoms.losses[0] - mu * mu / 2) / mu)
    assert atoms.masses[0] >= lowest
    assert math.fsum(atoms.masses) >= 1.0


def lower_edges(atoms: GaussianAtoms) -> GaussianAtoms:
    return replace(atoms, losses=np.concatenate([atoms.losses[:1], atoms.losses[:-1]]))


MUTANTS = {
    "no mass at infinity": lambda atoms, mu: replace(atoms, at_infinity=0.0),
    "lower edges": lambda atoms, mu: lower_edges(atoms),
    "the loss under Q": lambda atoms, mu: replace(atoms, losses=atoms.losses - mu * mu),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize("mu", MUS)
def test_mutants_do_not_dominate(name: str, mu: float) -> None:
    mutant = MUTANTS[name](gaussian_atoms(mu, 0.0), mu)
    assert min(excess(mutant, mu, quantile) for quantile in QUANTILES) < -1e-5


def test_moments_keep_their_digits() -> None:
    edges = np.array([-9.0, -8.9987, -2.0, -1.75, 0.0, 0.0013, 3.0, 3.0013, 8.0, 8.25, 36.75, 37.0])
    mass, largest_loss = _moments(edges)
    with mpmath.workdps(60):
        for a, b, got_mass, got_reach in zip(edges, edges[1:], mass, largest_loss, strict=False):
            a, b = mpmath.mpf(float(a)), mpmath.mpf(float(b))
            true = mpmath.ncdf(-a) - mpmath.ncdf(-b)
            first = mpmath.npdf(a) - mpmath.npdf(b) - a * true
            assert abs(got_mass / true - 1) < 3e-12
            assert abs(got_reach / first - 1) < 3e-9


@pytest.mark.parametrize("mu", [5e-324, 1e-200, 1e-12, 50.0, 1e6, 1e150])
@pytest.mark.parametrize("beside", [0.0, 1e-150, 1.0, 1e150])
def test_extremes_are_finite(mu: float, beside: float) -> None:
    atoms = gaussian_atoms(mu, beside)
    assert np.all(np.isfinite(atoms.losses))
    assert np.all(np.diff(atoms.losses) >= 0.0)
    assert np.all(atoms.masses >= 0.0)
    assert math.fsum(atoms.masses) == pytest.approx(1.0, abs=1e-7)
