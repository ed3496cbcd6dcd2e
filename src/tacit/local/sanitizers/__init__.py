"""What a person does to a gradient before it leaves. A new one is one file and a line here."""

from tacit.local.sanitizers.auto import least_noise
from tacit.local.sanitizers.base import Sanitizer, sanitizer_from_dict
from tacit.local.sanitizers.gaussian_noise import GaussianNoise
from tacit.local.sanitizers.half_sphere import HalfSphere
from tacit.local.sanitizers.no_noise import NoNoise
from tacit.local.sanitizers.priv_unit import PrivUnit
from tacit.local.sanitizers.sphere_noise import SphereNoise
from tacit.local.tail import Tail

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
