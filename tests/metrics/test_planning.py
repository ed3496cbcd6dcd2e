"""Bins: one half is an edge, few where noise is large, none from a look at scores."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.metrics.planning import bin_edges, checked_edges, good_bins
from tacit.queries.evaluation import bin_of


@pytest.mark.parametrize("n_bins", [2, 3, 8, 17, 64])
def test_edges_rise_and_hold_one_half(n_bins: int) -> None:
    edges = bin_edges(n_bins)
    assert len(edges) == n_bins + 1
    assert np.all(np.diff(edges) > 0)
    assert (edges[0], edges[-1]) == (0.0, 1.0)
    assert 0.5 in edges


def test_every_score_has_a_bin() -> None:
    edges = bin_edges(8)
    scores = np.array([0.0, 1e-300, 0.5, np.nextafter(0.5, 1), 1.0])
    assert bin_of(scores, edges).tolist() == [0, 0, 3, 4, 7]


def test_bins_follow_the_noise() -> None:
    found = [good_bins(std, 100_000) for std in (0.0, 1.0, 10.0, 100.0, 1000.0)]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (64, 16)
    assert good_bins(5.0, None) == 32


@pytest.mark.parametrize("edges", [[0, 1], [0, 0.4, 1], [0, 0.5, 0.4, 1], [0.1, 0.5, 1], [[0.5]]])
def test_edges_that_are_refused(edges: list[float]) -> None:
    with pytest.raises(ValueError, match=r"0\.5 among them"):
        checked_edges(edges)
