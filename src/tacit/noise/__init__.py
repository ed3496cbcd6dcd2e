"""Draw the randomness of every release. No other package draws it.

- `source`: random bits.
- `exact/lattice.py`: value + noise on a public lattice (`add_rounded`).
- `gaussian`, `laplace`, `sphere`, `spherical_cap`, `stable_histogram`, `selection`: mechanisms.
- `perturbed_minimizer`: the vector b of objective perturbation, and the noise on its minimiser.
- `prepared`: rows of noise that are drawn before their values are known.
- `bounded`, `release`, `summation`: a value with its sensitivity, a release with its event, and
  sums whose sensitivity holds in floats.
"""

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
