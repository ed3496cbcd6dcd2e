"""The only code that draws randomness for releases."""

from tacit.noise.bounded import Bounded, Norm
from tacit.noise.gaussian import gaussian
from tacit.noise.generator import Source, secure_source, seeded_source
from tacit.noise.laplace import laplace
from tacit.noise.lattice import lattice_spacing
from tacit.noise.line import Grid, select_on_line
from tacit.noise.release import Release
from tacit.noise.selection import select
from tacit.noise.sphere import sphere
from tacit.noise.summation import bounded_sum
from tacit.noise.tape import (
    Decision,
    Entry,
    ReplayMismatch,
    SensitivityViolation,
    Tape,
    decide,
    recording,
    replaying,
)

__all__ = [
    "Bounded",
    "Decision",
    "Entry",
    "Grid",
    "Norm",
    "Release",
    "ReplayMismatch",
    "SensitivityViolation",
    "Source",
    "Tape",
    "bounded_sum",
    "decide",
    "gaussian",
    "laplace",
    "lattice_spacing",
    "recording",
    "replaying",
    "secure_source",
    "seeded_source",
    "select",
    "select_on_line",
    "sphere",
]
