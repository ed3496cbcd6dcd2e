"""Draw the randomness of every release. No other package draws it."""

from tacit.noise.bounded import Norm
from tacit.noise.exact.lattice import Ahead, lattice_spacing
from tacit.noise.gaussian import draw_ahead
from tacit.noise.prepared import (
    PreparedRows,
    add_row,
    prepare_gaussian,
    prepare_sphere,
    reflect_row,
    release_rows,
)
from tacit.noise.release import (
    Decision,
    Entry,
    Release,
    ReplayMismatch,
    SensitivityViolation,
    Tape,
    decide,
    recording,
    replaying,
)
from tacit.noise.selection.ball import BallLattice, Concave
from tacit.noise.selection.line import Grid
from tacit.noise.source import Source, secure_source, seeded_source
from tacit.noise.spherical_cap import Cap, prepare_cap

__all__ = [
    "Ahead",
    "BallLattice",
    "Cap",
    "Concave",
    "Decision",
    "Entry",
    "Grid",
    "Norm",
    "PreparedRows",
    "Release",
    "ReplayMismatch",
    "SensitivityViolation",
    "Source",
    "Tape",
    "add_row",
    "decide",
    "draw_ahead",
    "lattice_spacing",
    "prepare_cap",
    "prepare_gaussian",
    "prepare_sphere",
    "recording",
    "reflect_row",
    "release_rows",
    "replaying",
    "secure_source",
    "seeded_source",
]
