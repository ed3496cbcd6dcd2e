"""Detect whether this process was forked."""

from __future__ import annotations

import os


class _ForkCounter:
    """Number of forks between this process and the first one that loaded tacit."""

    # A process id is not enough: in a namespace of its own a child can have its parent's id.
    generation = 0


def _count_one_more() -> None:
    _ForkCounter.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_one_more)


def generation() -> int:
    """Return a number that differs in every process forked from this one.

    Examples
    --------
    >>> from tacit.privacy.fork import generation
    >>> generation() == generation()
    True
    """
    return _ForkCounter.generation
