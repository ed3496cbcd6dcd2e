"""Public feature maps that know the norm of their rows and learn nothing."""

from tacit.features.feature_map import Domain, FeatureMap
from tacit.features.images import CosineWaves, OpponentColours, Scattering
from tacit.features.kernels import (
    GaussianKernel,
    Kernel,
    LaplacianKernel,
    MaternKernel,
    RandomFourierFeatures,
)
from tacit.features.normalization import GroupNormalization, Logarithms
from tacit.features.polynomials import Interactions, PolynomialFeatures
from tacit.features.splines import SplineFeatures

__all__ = [
    "CosineWaves",
    "Domain",
    "FeatureMap",
    "GaussianKernel",
    "GroupNormalization",
    "Interactions",
    "Kernel",
    "LaplacianKernel",
    "Logarithms",
    "MaternKernel",
    "OpponentColours",
    "PolynomialFeatures",
    "RandomFourierFeatures",
    "Scattering",
    "SplineFeatures",
]
