"""Name the mechanisms of `tacit.erm`, for type checkers and help texts.

Written by `make registry` from the lines of `tacit.erm.mechanisms`. It stands apart, so that a
command prints its help without loading them.
"""

from typing import Literal, get_args

# The names that ``mechanism=`` takes.
# registry: names
MechanismName = Literal[
    "auto",
    "objective_perturbation",
    "noisy_gradient",
    "output_perturbation",
    "sufficient_statistics",
    "noisy_sgd",
]
# end
MECHANISM_NAMES: tuple[str, ...] = get_args(MechanismName)
