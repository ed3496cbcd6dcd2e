"""Sanitise gradients on a device. A new sanitizer is one file and a line here."""

from tacit.local.sanitizers.additive import GaussianNoise, NoNoise, SphereNoise
from tacit.local.sanitizers.auto import least_noise
from tacit.local.sanitizers.base import Sanitizer, Tail, sanitizer_from_dict
from tacit.local.sanitizers.cap import HalfSphere, PrivUnit

__all__ = [
    "GaussianNoise",
    "HalfSphere",
    "NoNoise",
    "PrivUnit",
    "Sanitizer",
    "SphereNoise",
    "Tail",
    "least_noise",
    "sanitizer_from_dict",
]
