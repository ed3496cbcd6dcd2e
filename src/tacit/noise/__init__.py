"""Draw the randomness of every release. No other package draws it."""

from tacit.noise.additive_rows import prepare_gaussian, prepare_sphere
from tacit.noise.ball_selection import Concave
from tacit.noise.bounded import Norm
from tacit.noise.cap import Cap
from tacit.noise.cap_rows import prepare_cap
from tacit.noise.cells import BallLattice
from tacit.noise.gaussian import draw_ahead
from tacit.noise.generator import Source, secure_source, seeded_source
from tacit.noise.grid_selection import Grid
from tacit.noise.lattice import Ahead, lattice_spacing
from tacit.noise.prepared_noise import PreparedRows, add_row, reflect_row, release_rows
from tacit.noise.release import Release
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
