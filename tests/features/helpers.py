"""Every map of rows, with parameters that are not the usual ones."""

from __future__ import annotations

from typing import Any

from tacit.features import (
    Interactions,
    LaplacianKernel,
    Logarithms,
    PolynomialFeatures,
    RandomFourierFeatures,
    SplineFeatures,
)

BOUNDS: dict[str, dict[str, Any]] = {
    "norm": {"row_norm": 1.5},
    "ranges": {"ranges": [(-1.0, 0.5), (0.0, 2.0), (-0.3, 0.1)]},
    "both": {"row_norm": 1.2, "ranges": [(-1.0, 0.5), (0.0, 2.0), (-0.3, 0.1)]},
}


def maps(**known: Any) -> dict[str, Any]:
    """Return one or two of each class, told what is known of rows of three columns."""
    return {
        "waves": RandomFourierFeatures(n_frequencies=5, seed=1, **known),
        "rough waves": RandomFourierFeatures(LaplacianKernel(), 3, seed=1, **known),
        "polynomials": PolynomialFeatures(**known),
        "cubes": PolynomialFeatures(3, **known),
        "logarithms": Logarithms(0.3, **known),
        "interactions": Interactions(**known),
        "an interaction": Interactions([(2, 0)], **known),
        "splines": SplineFeatures(**known),
        "some splines": SplineFeatures(4, 2, columns=[1], **known),
        "lines": SplineFeatures(3, 1, columns=[0, 2], **known),
    }
