"""Define laws of the number of trials of a search, K, which is independent of the data and secret.

Privacy depends on a law only through phi(u) = E u^K. Its derivative is the ratio of how often a run
is released to how often it is made, given its rank (docs/proofs/best_of.md).
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

from tacit import checks
from tacit.arrays import Array
from tacit.privacy.accounting.root_finding import decreasing_root

_LEFT_OUT = 1e-13  # part of E K beyond a table of probabilities
_MOST_ENTRIES = 10**7  # of a table: 80 MB
_LEAST_GAMMA = 1e-5  # least accepted gamma: the geometric law then has mean 1e5

_KINDS: dict[str, type[TriesLaw]] = {}


class TriesLaw(ABC):
    """Law of the number of trials of a search.

    Guarantee: 1. ``slope(p)`` = phi'(1 - p), decreasing in p. 2. ``at_zero`` = P(K = 0).
    3. ``table`` holds P(K = 0), P(K = 1), ..., each with a relative error of 1e-12; the omitted
    tail contains 1e-13 of E K.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @abstractmethod
    def slope(self, better: Array) -> Array:
        """Return phi'(1 - p) for probabilities p that another run is better."""

    @property
    @abstractmethod
    def table(self) -> Array:
        """P(K = 0), P(K = 1), ... up to a negligible tail."""

    @property
    def at_zero(self) -> float:
        """P(K = 0): no trial is made, and the release does not depend on the data."""
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
    """Return the law of a dictionary made by ``to_dict``.

    Examples
    --------
    >>> from tacit.privacy.accounting.number_of_trials import Capped, Poisson, law_from_dict
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

    eta = 1 is the geometric law, eta = 0 the logarithmic law; the mean increases as gamma falls.

    Examples
    --------
    >>> from tacit.privacy.accounting.number_of_trials import TruncatedNegativeBinomial
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
        """Return the law with this mean, which must be above 1."""
        most = cls(eta, _LEAST_GAMMA).mean
        if not 1.0 < checks.real("mean", mean) < most:
            raise ValueError(
                f"the mean number of tries must be above 1 and below {most:g}, got {mean!r}; one "
                "try is a fit without search."
            )
        # The odds 1 / gamma - 1 are positive, and the mean increases in them from 1 on.
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
    """Poisson law, K = 0, 1, ...: phi'(1 - p) = m exp(-m p). K = 0 releases a default.

    Examples
    --------
    >>> from tacit.privacy.accounting.number_of_trials import Poisson
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
    """Fixed number of trials: phi'(1 - p) = K (1 - p)^(K - 1).

    For comparison: ten trials of a Gaussian run of mu = 0.5 cost epsilon 6.8 at delta 1e-5, and a
    geometric number of trials with mean ten costs 3.0.

    Examples
    --------
    >>> from tacit.privacy.accounting.number_of_trials import FixedTries
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
        """Probability 1 at K."""
        table = np.zeros(self.count + 1)
        table[self.count] = 1.0
        return table


@dataclass(frozen=True)
class Capped(TriesLaw):
    """Another law, conditioned on K <= ``most``: phi is a polynomial, evaluated directly.

    The tail of K is long; a cap bounds the time of a search. For the same mean a capped law costs
    more: it is closer to a fixed K.

    Examples
    --------
    >>> from tacit.privacy.accounting.number_of_trials import Capped, TruncatedNegativeBinomial
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
        """The probabilities up to the cap, divided by their sum."""
        head = self.law.table[: self.most + 1]
        result: Array = head / head.sum()
        return result

    def slope(self, better: Array) -> Array:
        """Return sum of k P(k) (1 - p)^(k - 1): all terms are positive, none cancels."""
        terms = np.arange(1, self.table.size) * self.table[1:]
        found = np.polynomial.polynomial.polyval(1.0 - better, terms)
        return np.asarray(found, dtype=np.float64)


def _table(first: Array, ratio: Any, mean: float) -> Array:
    """Return P(0), P(1) and the next by P(k + 1) = P(k) ratio(k), until E K is exhausted."""
    n = 64
    while n <= _MOST_ENTRIES:
        rest = first[1] * np.cumprod(ratio(np.arange(1.0, n)))
        table: Array = np.concatenate([first, rest])
        k = np.arange(table.size)
        # The terms fall at least geometrically once ratio < 1: the omitted tail is below
        # k P(k) / (1 - r)^2 of the last term.
        r = float(ratio(np.array([float(n)]))[0])
        if r < 1.0 and n * table[-1] / (1 - r) ** 2 <= _LEFT_OUT * mean:
            return table[: int(np.flatnonzero(k * table > 0.0)[-1]) + 1]
        n *= 2
    raise ValueError("the law of tries has too long a tail; take a smaller mean.")
