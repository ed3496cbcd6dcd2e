"""How far the noise alone may have moved a weight: what a plan, without data, can say.

Standard errors of the noise, not of sampling: they say how far the released number is from the
one that the same records would have given without noise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NoiseError:
    """The standard error of one weight, if known, and the sentence that must go with it."""

    std: float | None
    sentence: str
    is_bound: bool = False


def unknown(why: str) -> NoiseError:
    """Return that nothing can be said, and why."""
    return NoiseError(None, "No error bars are shown: " + why)
