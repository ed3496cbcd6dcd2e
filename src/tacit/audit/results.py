"""Hold the result of an audit: lower bounds and their assumptions, beside the claim."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.privacy import Budget

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """One lower bound on epsilon at the claim's delta.

    Parameters
    ----------
    method
        How the bound was found.
    epsilon
        The lower bound on epsilon.
    assumes
        What the bound assumes, beyond independent fits.
    """

    method: str
    epsilon: float
    assumes: str


@dataclass(frozen=True)
class Audit:
    """Lower bounds on the epsilon of code that was run, beside its claim.

    Parameters
    ----------
    subject
        The code that was run.
    claim
        The claimed budget.
    level
        The probability with which a bound may be too high.
    findings
        The bounds; each holds by itself, with that probability of error.
    without, with_it
        The scores of fits without and with the extra record; empty if there were none.
    notes
        Further observations.

    Examples
    --------
    >>> from tacit.audit import Audit
    >>> from tacit.audit.results import Finding
    >>> from tacit.privacy import Budget
    >>> found = Audit("a sum", Budget(1.0, 1e-6), 0.05, (Finding("by hand", 0.8, "nothing"),))
    >>> found.strongest.epsilon, found.above_claim
    (0.8, ())
    """

    subject: str
    claim: Budget
    level: float
    findings: tuple[Finding, ...]
    without: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    with_it: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def strongest(self) -> Finding:
        """The greatest lower bound."""
        return max(self.findings, key=lambda finding: finding.epsilon)

    @property
    def above_claim(self) -> tuple[Finding, ...]:
        """The bounds that contradict the claim."""
        return tuple(f for f in self.findings if f.epsilon > self.claim.epsilon)

    @property
    def conclusion(self) -> str:
        """The result in a sentence; it never says that the claim is true."""
        sure = f"{100 * (1 - self.level):g} %"
        if self.above_claim:
            worst = max(self.above_claim, key=lambda finding: finding.epsilon)
            return (
                f"CONTRADICTED: epsilon is at least {down(worst.epsilon)}, above the claim of "
                f"{self.claim.epsilon:g}, with confidence {sure}, assuming {worst.assumes}."
            )
        return (
            f"Nothing above the claim was found: epsilon is at least "
            f"{down(self.strongest.epsilon)}, with confidence {sure}, assuming "
            f"{self.strongest.assumes}. That does not show that the claim is true: another pair of "
            "data sets, or another way to look, may tell more."
        )

    def __str__(self) -> str:
        fits = f", {self.without.size:,} fits without and {self.with_it.size:,} with one record"
        lines = [
            f"audit of {self.subject}{fits if self.without.size else ''}",
            f"  claimed: epsilon {self.claim.epsilon:g} at delta {self.claim.delta:g}",
            *(
                f"  at least {down(f.epsilon)} {f.method}, assuming {f.assumes}"
                for f in self.findings
            ),
            *(f"  {note}" for note in self.notes),
            self.conclusion,
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary, without the scores."""
        claim = {
            "epsilon": self.claim.epsilon,
            "delta": self.claim.delta,
            "relation": self.claim.relation.value,
        }
        return {
            "subject": self.subject,
            "claim": claim,
            "level": self.level,
            "fits": [int(self.without.size), int(self.with_it.size)],
            "findings": [vars(finding) for finding in self.findings],
            "notes": list(self.notes),
            "conclusion": self.conclusion,
        }


def down(epsilon: float) -> str:
    """Return a lower bound with three decimals, rounded down."""
    return f"{math.floor(epsilon * 1000) / 1000:g}" if math.isfinite(epsilon) else "any number"
