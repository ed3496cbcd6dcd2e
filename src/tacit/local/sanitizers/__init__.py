"""Sanitise gradients on a device. A new sanitizer is one file and a line here."""

from tacit.local.sanitizers.additive import GaussianNoise, SphereNoise
from tacit.local.sanitizers.auto import least_noise
from tacit.local.sanitizers.base import Sanitizer, Tail
from tacit.local.sanitizers.cap import HalfSphere, PrivUnit

__all__ = [
    "GaussianNoise",
    "HalfSphere",
    "PrivUnit",
    "Sanitizer",
    "SphereNoise",
    "Tail",
    "least_noise",
]
