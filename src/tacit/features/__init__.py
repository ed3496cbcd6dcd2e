"""Public maps of rows that know their row norm, and learn nothing."""

from tacit.features.colours import OpponentColours
from tacit.features.domain import Domain
from tacit.features.feature_map import FeatureMap
from tacit.features.fourier import RandomFourierFeatures
from tacit.features.groups import GroupNormalization
from tacit.features.images import CosineWaves, Scattering
from tacit.features.interactions import Interactions
from tacit.features.kernels import GaussianKernel, Kernel, LaplacianKernel, MaternKernel
from tacit.features.logarithms import Logarithms
from tacit.features.polynomials import PolynomialFeatures
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
