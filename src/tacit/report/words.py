"""Mechanisms and their plans in plain words."""

from __future__ import annotations

from tacit.erm import Plan
from tacit.erm.planner import KINDS
from tacit.report.numbers import short

_TITLES = {kind.name: kind.title for kind in KINDS.values()}


def mechanism_title(name: str) -> str:
    """Return a mechanism's name as a heading has it.

    Examples
    --------
    >>> from tacit.report.words import mechanism_title
    >>> mechanism_title("noisy_gradient"), mechanism_title("my_own")
    ('Noisy gradient descent', 'My own')
    """
    plain = name.replace("_", " ")
    return _TITLES.get(name, plain[:1].upper() + plain[1:])


def noise_in_words(plan: Plan) -> str:
    """Return where a plan puts noise and how much, a sentence.

    Examples
    --------
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.report.words import noise_in_words
    >>> noise_in_words(LogisticRegression(1.0, 1e-6, classes=[0, 1]).plan(20))
    'Gaussian noise of standard deviation ... tilts the objective once.'
    """
    return plan.mechanism.noise_in_words(plan, lambda value: short(value, 3))
