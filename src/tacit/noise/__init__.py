"""Draw the randomness of every release. No other package draws it."""

from tacit.noise.additive_rows import prepare_gaussian, prepare_sphere
from tacit.noise.ball_selection import Concave, select_in_ball
from tacit.noise.bounded import Bounded, Norm
from tacit.noise.cap import Cap, cap
from tacit.noise.cap_rows import prepare_cap
from tacit.noise.cells import BallLattice
from tacit.noise.frequent import frequent
from tacit.noise.gaussian import draw_ahead, gaussian
from tacit.noise.generator import Source, secure_source, seeded_source
from tacit.noise.grid_selection import Grid, select_on_line
from tacit.noise.laplace import laplace
from tacit.noise.lattice import Ahead, lattice_spacing
from tacit.noise.noisy_max import (
    gaussian_above,
    gaussian_majorities,
    gaussian_winners,
    laplace_winners,
)
from tacit.noise.prepared_noise import PreparedRows, add_row, reflect_row, release_rows
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
    "Ahead",
    "BallLattice",
    "Bounded",
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
    "bounded_sum",
    "cap",
    "decide",
    "draw_ahead",
    "frequent",
    "gaussian",
    "gaussian_above",
    "gaussian_majorities",
    "gaussian_winners",
    "laplace",
    "laplace_winners",
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
    "select",
    "select_in_ball",
    "select_on_line",
    "sphere",
]
