"""Define the interface of sanitizers: they turn one person's gradient into a report."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.noise import Release, Source, secure_source
from tacit.noise.prepared import PreparedRows, norm_tolerance, release_rows
from tacit.privacy import PureEpsilon, Relation
from tacit.privacy.events import Event


@dataclass(frozen=True)
class Tail:
    """The tail of a report: E exp(v <xi, u>) <= exp(v^2 variance / 2), |v| <= largest_rate.

    Here xi = report - E report and u is any unit vector; the bound holds for every gradient within
    the norm. ``largest_rate`` is infinite for bounded and for Gaussian noise, and finite for noise
    with an exponential tail.

    Examples
    --------
    >>> from tacit.local import Tail
    >>> Tail(variance=4.0).largest_rate
    inf
    """

    variance: float
    largest_rate: float = math.inf

    def __post_init__(self) -> None:
        checks.at_least("variance", self.variance, 0.0)
        checks.above_zero("largest_rate", self.largest_rate)

    def plus_rounding(self, size: float) -> Tail:
        """Return the tail of xi + e with e a function of the report, |<e, u>| <= ``size``.

        sigma -> sigma + size and largest_rate -> largest_rate / (1 + size / sigma): Holder's
        inequality with exponents 1 + size/sigma and 1 + sigma/size, and Hoeffding's for e.
        """
        sigma = math.sqrt(self.variance)
        return Tail((sigma + size) ** 2, self.largest_rate / (1.0 + size / sigma))


Array = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

# Minus the log of the probability with which `is_possible` may refuse a true report.
LOG_CHANCE_OF_REFUSAL = 100.0
_MOST_FEATURES = 10**6
# Beyond, a lattice step of additive noise would be too small a share of the norm for a double.
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 1e9
_KINDS: dict[str, type[Sanitizer]] = {}


class Sanitizer(ABC):
    """A random map that makes an unbiased, private estimate of a gradient of norm at most ``norm``.

    A report is ``spacing * steps`` with whole steps. One report of one person costs ``event``
    under ``Relation.REPLACE``: any record for any other, against whoever receives the report.

    The meaning of a kind never changes: client and server agree on a sanitizer by `to_dict`.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    epsilon: float
    delta: float
    n_features: int
    norm: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    def __post_init__(self) -> None:
        """Check the common parameters, and convert them to plain numbers."""
        checked = {
            "epsilon": checks.positive(
                "epsilon",
                self.epsilon,
                least=_LEAST_EPSILON,
                most=_MOST_EPSILON,
                remedy="pass what one report may cost, such as epsilon=1.0.",
            ),
            "n_features": checked_features(self.n_features),
            "norm": checks.positive(
                "norm",
                self.norm,
                least=2.0**-200,
                most=2.0**200,
                remedy="pass the bound to which gradients are clipped, such as norm=1.0.",
            ),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def event(self) -> Event:
        """The cost of one report for its sender."""
        return PureEpsilon(self.epsilon, Relation.REPLACE)

    @property
    @abstractmethod
    def rms_norm(self) -> float:
        """sqrt(E ||report||^2) for the worst gradient, before rounding to the lattice."""

    @property
    @abstractmethod
    def tail(self) -> Tail:
        """The tail of the noise for a learner, including rounding to the lattice."""

    @property
    @abstractmethod
    def spacing(self) -> float:
        """The size of one step."""

    @abstractmethod
    def prepare(self, n: int, source: Source) -> PreparedRows:
        """Return ``n`` rows of noise, drawn before the gradients that they hide are known."""

    @abstractmethod
    def _is_plausible(self, steps: Array) -> bool:
        """Return whether a report of the right length can be a true one."""

    def sanitize(self, gradient: Array, source: Source | None = None) -> Release[Array]:
        """Return one person's report.

        Parameters
        ----------
        gradient : array of shape (n_features,)
            float64, finite, of Euclidean norm at most ``norm``.
        source : Source, optional
            The source of random bits. By default a new `secure_source`.

        Returns
        -------
        Release
            The report, with ``event`` as its cost.

        Notes
        -----
        **Guarantee**: a gradient that is too long, not finite, or of the wrong shape or type is
        refused before anything is drawn.
        """
        row = np.asarray(gradient)
        if row.ndim != 1:
            raise ValueError(
                f"gradient must have shape ({self.n_features},), got {row.shape}; use "
                "sanitize_batch for the gradients of several people."
            )
        release = self._release(self._checked(row[None, :], "gradient"), source)
        return Release(release.value[0], release.event)

    def sanitize_batch(self, gradients: Array, source: Source | None = None) -> Release[Array]:
        """Return one report for each row of ``gradients``, one row per person.

        The event is the cost of each person; no person may have two rows.
        """
        rows = np.asarray(gradients)
        if rows.ndim != 2 or not rows.size:
            raise ValueError(
                f"gradients must have shape (n, {self.n_features}) with n >= 1, got {rows.shape}; "
                "pass one row for each person."
            )
        return self._release(self._checked(rows, "gradients"), source)

    def _release(self, rows: Array, source: Source | None) -> Release[Array]:
        if not (source is None or (hasattr(source, "words") and hasattr(source, "is_secure"))):
            raise TypeError(
                f"source must be a Source, got {source!r}; leave it out for a secure one."
            )
        prepared = self.prepare(len(rows), secure_source() if source is None else source)
        release = release_rows(rows, prepared, self.norm, self.event)
        reports: Array = np.multiply(release.value, self.spacing, dtype=np.float64)
        return Release(reports, release.event)

    def _checked(self, rows: npt.NDArray[Any], name: str) -> Array:
        if rows.dtype != np.float64:
            raise TypeError(
                f"{name} has dtype {rows.dtype}; clip it in float64, so that the norm that was "
                "checked is the norm that is released."
            )
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"{name} has {rows.shape[1]} coordinates, but the sanitizer is for n_features = "
                f"{self.n_features}; build both from the same model."
            )
        # NaN and infinity fail the comparison; dividing first avoids overflow.
        lengths = np.sqrt(np.einsum("ij,ij->i", rows / self.norm, rows / self.norm))
        wrong = np.flatnonzero(~(lengths <= 1.0 + norm_tolerance(self.n_features)))
        if wrong.size:
            raise ValueError(
                f"{name} must be finite with norm at most {self.norm!r}; row {wrong[0]} is "
                "not, and the noise would not hide it: clip each gradient to the norm first."
            )
        return np.ascontiguousarray(rows)

    def is_possible(self, steps: npt.ArrayLike) -> bool:
        """Return whether integer ``steps`` can be a true report.

        Notes
        -----
        **Guarantee**: a true report is refused with probability below e^-100 (below 4e-44), and
        never by a sanitizer whose reports are bounded.
        """
        array = np.asarray(steps)
        if array.shape != (self.n_features,) or array.dtype.kind not in "iu":
            return False
        return self._is_plausible(array.astype(np.float64))

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON, from which the other side makes the same sanitizer."""
        # Every sanitizer is a frozen dataclass; the base is not, so that each orders its fields.
        names = [field.name for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        fields = {name: getattr(self, name) for name in names}
        return {"kind": self.kind, "version": self.version, **fields}


def norm_slack(n_features: int) -> float:
    """Return the factor by which noise is widened for norms that a float check lets pass."""
    # Twice the tolerance covers it and the float error of the check itself, d 2^-53.
    return 1.0 + 2.0 * norm_tolerance(n_features)


def sanitizer_from_dict(record: Mapping[str, Any]) -> Sanitizer:
    """Make the sanitizer that ``to_dict`` described.

    Notes
    -----
    **Guarantee**: the sanitizer costs no more than the ``epsilon`` and ``delta`` in the record,
    whatever else the record says; a record with missing or unknown parameters is refused.

    Examples
    --------
    >>> from tacit.local import HalfSphere
    >>> from tacit.local.sanitizers.base import sanitizer_from_dict
    >>> sanitizer = HalfSphere(1.0, n_features=3)
    >>> sanitizer_from_dict(sanitizer.to_dict()) == sanitizer
    True
    """
    fields = dict(record)
    kind, version = fields.pop("kind", None), fields.pop("version", None)
    if not isinstance(kind, str) or kind not in _KINDS or version != _KINDS[kind].version:
        raise ValueError(
            f"unknown sanitizer kind {kind!r} version {version!r}: this tacit knows "
            f"{sorted(_KINDS)}; use one version of tacit on both sides."
        )
    names = {field.name for field in dataclasses.fields(_KINDS[kind])}  # type: ignore[arg-type]
    if set(fields) != names:
        raise ValueError(
            f"a {kind!r} sanitizer has the parameters {sorted(names)}, got {sorted(fields)}; pass "
            "what to_dict returned."
        )
    return _KINDS[kind](**fields)


def checked_features(value: object) -> int:
    """Check a number of features of a report."""
    remedy = "pass the length of a gradient."
    return checks.count("n_features", value, most=_MOST_FEATURES, remedy=remedy)
