"""Laws of the number of tries of a search, K: drawn apart from the data, and kept secret.

All that privacy asks of a law is phi(u) = E u^K: its derivative is how much more often a run is
released than it is made, given how good it is (docs/proofs/selection.md).
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.privacy.roots import decreasing_root

Array = npt.NDArray[np.float64]

_LEFT_OUT = 1e-13  # of E K, beyond a table of probabilities
_MOST_ENTRIES = 10**7
_LEAST_GAMMA = 1e-5

_KINDS: dict[str, type[TriesLaw]] = {}


class TriesLaw(ABC):
    """How many tries a search makes.

    Guarantee: 1. ``slope(p)`` = phi'(1 - p), falling in p. 2. ``at_zero`` = P(K = 0). 3. ``table``
    holds P(K = 0), P(K = 1), ..., each to 1e-12 of itself; what it leaves out is 1e-13 of E K.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @abstractmethod
    def slope(self, better: Array) -> Array:
        """Return phi'(1 - p) for probabilities p that a run is better."""

    @property
    @abstractmethod
    def table(self) -> Array:
        """P(K = 0), P(K = 1), ... as far as they matter."""

    @property
    def at_zero(self) -> float:
        """P(K = 0): nothing is tried, and what is released is the same whatever the data."""
        return float(self.table[0])

    @property
    def mean(self) -> float:
        """E K = phi'(1)."""
        return float(self.slope(np.zeros(1))[0])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary with a stable ``kind``."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {f.name: getattr(self, f.name) for f in fields}
        return {"kind": self.kind} | {
            name: v.to_dict() if isinstance(v, TriesLaw) else v for name, v in values.items()
        }


def law_from_dict(record: Mapping[str, Any]) -> TriesLaw:
    """Return the law that ``to_dict`` described.

    Examples
    --------
    >>> from tacit.privacy.tries import Capped, Poisson, law_from_dict
    >>> law_from_dict(Capped(Poisson(5.0), 9).to_dict())
    Capped(law=Poisson(mean_tries=5.0), most=9)
    """
    fields = dict(record)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(
            f"unknown law of tries {kind!r}: this tacit knows {sorted(_KINDS)}; read the file with "
            "the version of tacit that wrote it, or newer."
        )
    rich = {k: law_from_dict(v) if isinstance(v, Mapping) else v for k, v in fields.items()}
    return _KINDS[kind](**rich)


@dataclass(frozen=True)
class TruncatedNegativeBinomial(TriesLaw):
    """K = 1, 2, ... with P(k + 1) / P(k) = (1 - gamma)(k + eta) / (k + 1).

        phi'(1 - p) = c (gamma + (1 - gamma) p)^(-eta - 1)
        c = eta (1 - gamma) / (gamma^-eta - 1),   (1 - gamma) / log(1 / gamma) at eta = 0

    eta = 1 is the geometric law, eta = 0 the logarithmic one; the mean grows as gamma falls.

    Examples
    --------
    >>> from tacit.privacy.tries import TruncatedNegativeBinomial
    >>> TruncatedNegativeBinomial(1.0, 0.1).mean
    10.0
    >>> round(TruncatedNegativeBinomial.of_mean(20.0, eta=0.0).gamma, 4)
    0.011
    """

    kind = "truncated_negative_binomial"

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        if not checks.real("eta", self.eta) >= 0.0:
            raise ValueError(f"eta must be at least 0, got {self.eta!r}; 1 is the geometric law.")
        if not _LEAST_GAMMA <= checks.real("gamma", self.gamma) < 1.0:
            raise ValueError(
                f"gamma must be in [{_LEAST_GAMMA:g}, 1), got {self.gamma!r}; for a law of given "
                "mean use TruncatedNegativeBinomial.of_mean."
            )

    @classmethod
    def of_mean(cls, mean: float, eta: float = 1.0) -> TruncatedNegativeBinomial:
        """Return the law of this mean, which is above 1."""
        most = cls(eta, _LEAST_GAMMA).mean
        if not 1.0 < checks.real("mean", mean) < most:
            raise ValueError(
                f"the mean number of tries must be above 1 and below {most:g}, got {mean!r}; one "
                "try is a fit without search."
            )
        # 1 / gamma - 1 is positive, and the mean grows with it from 1 on
        odds = decreasing_root(lambda x: mean - cls(eta, 1 / (1 + x)).mean, 1.0)
        return cls(eta, 1.0 / (1.0 + odds))

    def slope(self, better: Array) -> Array:
        """Return c (gamma + (1 - gamma) p)^(-eta - 1)."""
        eta, gamma = self.eta, self.gamma
        log = math.log(gamma)
        over = eta / math.expm1(-eta * log) if eta * -log > 1e-15 else -1.0 / log
        result: Array = (1 - gamma) * over * (gamma + (1 - gamma) * better) ** (-eta - 1.0)
        return result

    @cached_property
    def table(self) -> Array:
        """The probabilities, by their recursion."""
        first = float(self.slope(np.ones(1))[0])  # P(K = 1) = phi'(0)
        return _table(
            np.array([0.0, first]), lambda k: (1 - self.gamma) * (k + self.eta) / (k + 1), self.mean
        )


@dataclass(frozen=True)
class Poisson(TriesLaw):
    """K = 0, 1, ... of Poisson's law: phi'(1 - p) = m exp(-m p). K = 0 releases a default.

    Examples
    --------
    >>> from tacit.privacy.tries import Poisson
    >>> round(Poisson(10.0).at_zero, 7)
    4.54e-05
    """

    kind = "poisson"

    mean_tries: float

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        mean = checks.positive("mean_tries", self.mean_tries, remedy="pass how many to expect.")
        if mean > 500.0:
            raise ValueError(f"mean_tries must be at most 500 for Poisson's law, got {mean!r}.")

    def slope(self, better: Array) -> Array:
        """Return m exp(-m p)."""
        result: Array = self.mean_tries * np.exp(-self.mean_tries * better)
        return result

    @cached_property
    def table(self) -> Array:
        """The probabilities, by their recursion."""
        m = self.mean_tries
        return _table(np.array([math.exp(-m), m * math.exp(-m)]), lambda k: m / (k + 1), m)


@dataclass(frozen=True)
class FixedTries(TriesLaw):
    """K tries always: phi'(1 - p) = K (1 - p)^(K - 1).

    For comparison: ten tries of a Gaussian run of mu = 0.5 cost epsilon 6.8 at delta 1e-5, and a
    geometric number of tries with mean ten costs 3.0.

    Examples
    --------
    >>> from tacit.privacy.tries import FixedTries
    >>> FixedTries(10).mean
    10.0
    """

    kind = "fixed"

    count: int

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        checks.count("count", self.count, most=10_000)

    def slope(self, better: Array) -> Array:
        """Return K (1 - p)^(K - 1)."""
        result: Array = self.count * (1.0 - better) ** (self.count - 1)
        return result

    @cached_property
    def table(self) -> Array:
        """One at K."""
        table = np.zeros(self.count + 1)
        table[self.count] = 1.0
        return table


@dataclass(frozen=True)
class Capped(TriesLaw):
    """Another law given that K is at most ``most``: phi is a polynomial, evaluated as it is.

    The tail of K is long, and a search with a cap has a longest time. For the same mean it costs
    more: a cap is a step towards a fixed K.

    Examples
    --------
    >>> from tacit.privacy.tries import Capped, TruncatedNegativeBinomial
    >>> law = TruncatedNegativeBinomial(1.0, 0.1)
    >>> round(Capped(law, 30).mean, 2)
    8.67
    """

    kind = "capped"

    law: TriesLaw
    most: int

    def __post_init__(self) -> None:
        checks.keep_plain_numbers(self)
        if not isinstance(self.law, TriesLaw):
            raise TypeError(f"Capped takes a law of tries, got {self.law!r}.")
        checks.count("most", self.most, most=10_000)
        if self.law.table[1 : self.most + 1].sum() <= 0.0:
            raise ValueError(f"{self.law} never makes between 1 and {self.most} tries.")

    @cached_property
    def table(self) -> Array:
        """The probabilities up to the cap, over their sum."""
        kept = self.law.table[: self.most + 1]
        result: Array = kept / kept.sum()
        return result

    def slope(self, better: Array) -> Array:
        """Return sum of k P(k) (1 - p)^(k - 1): all terms are positive, none cancels."""
        terms = np.arange(1, self.table.size) * self.table[1:]
        found = np.polynomial.polynomial.polyval(1.0 - better, terms)
        return np.asarray(found, dtype=np.float64)


def _table(first: Array, ratio: Any, mean: float) -> Array:
    """Return P(0), P(1) and what follows by P(k + 1) = P(k) ratio(k), until E K is exhausted."""
    n = 64
    while n <= _MOST_ENTRIES:
        rest = first[1] * np.cumprod(ratio(np.arange(1.0, n)))
        table: Array = np.concatenate([first, rest])
        k = np.arange(table.size)
        # the terms fall at least geometrically once ratio < 1: what is left out is below
        # k P(k) / (1 - r)^2 of the last
        r = float(ratio(np.array([float(n)]))[0])
        if r < 1.0 and n * table[-1] / (1 - r) ** 2 <= _LEFT_OUT * mean:
            return table[: int(np.flatnonzero(k * table > 0.0)[-1]) + 1]
        n *= 2
    raise ValueError("the law of tries has too long a tail; take a smaller mean.")
