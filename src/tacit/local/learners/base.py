"""Define the interface of learners: pure state machines that see only reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.local._compiled import compilable

Array = npt.NDArray[np.float64]

Step = Callable[[Any, Array, Any], Any]

# No sanitizer makes a larger report; below it, sums of squares are finite for any number of people.
LARGEST_REPORT = 1e100


class Learner(Protocol):
    """Learns from reports, each an unbiased estimate of a negative subgradient.

    ``step(state, report, settings)`` is one update in plain arithmetic that can be compiled;
    `update` calls it. States are immutable named tuples, so one can be stored,
    saved (`tacit.local.state_to_bytes`) and resumed.
    """

    @property
    def step(self) -> Step:
        """The update as a function of state, report and settings."""

    @property
    def settings(self) -> Any:
        """The learner's parameters, as a named tuple of floats."""

    def init(self, n_features: int) -> Any:
        """Return the state before any report."""

    def update(self, state: Any, report: Array) -> Any:
        """Return the state after another report."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description."""


def checked_report(report: Array, point: Array) -> Array:
    """Check a report: as long as the point, finite, and not above `LARGEST_REPORT`."""
    checked = checks.vector("report", report, point.size)
    largest = float(np.max(np.abs(checked)))
    if largest > LARGEST_REPORT:
        raise ValueError(
            f"report has a coordinate of size {largest:g}, above {LARGEST_REPORT:g}: no sanitizer "
            "makes such a report; it is refused."
        )
    return checked


@compilable
def weight_of_newest(n: int, averaging: float) -> float:
    """Return the newest point's weight in the average of ``n`` points.

        (1 + k) / (n + k)

    k = 0 is the plain average; k > 0 gives point i a weight of about i^k, which forgets the
    start of learning (Shamir and Zhang 2013).
    """
    return (1.0 + averaging) / (n + averaging)
