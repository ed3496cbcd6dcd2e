"""Draw the randomness of every release. No other package draws it."""

from tacit.noise.bounded import Norm
from tacit.noise.gaussian import draw_ahead as draw_ahead
from tacit.noise.release import (
    Entry,
    Release,
    ReplayMismatch,
    SensitivityViolation,
    Tape,
    recording,
    replaying,
)
from tacit.noise.selection.line import Grid as Grid
from tacit.noise.source import Source, secure_source, seeded_source
from tacit.noise.spherical_cap import Cap as Cap
from tacit.noise.spherical_cap import prepare_cap as prepare_cap

__all__ = [
    "Entry",
    "Norm",
    "Release",
    "ReplayMismatch",
    "SensitivityViolation",
    "Source",
    "Tape",
    "recording",
    "replaying",
    "secure_source",
    "seeded_source",
]
