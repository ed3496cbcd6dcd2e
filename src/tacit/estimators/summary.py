"""Show coefficients with their standard errors, as in a regression table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr
from sklearn.utils.validation import check_is_fitted

from tacit.erm.inference import WITHIN
from tacit.erm.plan import Errors
from tacit.estimators.parameters import positive_class, positive_sign

_NOTE = "Standard errors cover sampling and the noise of the privacy mechanism."


@dataclass(frozen=True)
class Summary:
    """A table: coefficient, standard error, z, p and 95 % interval of every term.

    Prints as text; `rows` are dictionaries and `to_frame` a pandas frame. All values were released
    by the fit, or are computed from releases.

    Parameters
    ----------
    model
        The type of the model.
    names
        The terms.
    coefficients, standard_errors
        One number per term.
    ratio
        The name of exp(coefficient): "odds ratio", "rate ratio", or None.
    references
        The reference value of each category.
    positive
        The class whose odds the coefficients are of: the last one declared.
    remark
        A sentence on a possible bias, or nothing.

    Examples
    --------
    >>> from tacit.linear_model import Summary
    >>> table = Summary("LinearRegression", ("age",), (0.5,), (0.1,))
    >>> print(table)
    LinearRegression
    term      coef  std err        z  P>|z|  [0.025  0.975]
    age     0.5000   0.1000    5.000  0.000  0.3040  0.6960
    Standard errors cover sampling and the noise of the privacy mechanism.
    >>> table.rows()[0]["p"] < 1e-6
    True
    """

    model: str
    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    standard_errors: tuple[float, ...]
    ratio: str | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    positive: str | None = None
    remark: str = ""

    def named(
        self, features: Sequence[str], references: Mapping[str, str] | None = None
    ) -> Summary:
        """Return a copy with other feature names; the intercept keeps its name."""
        names = (*features, *self.names[len(features) :])
        return replace(self, names=names, references=references or self.references)

    def in_units(self, units: Sequence[tuple[str, float]]) -> Summary:
        """Return a copy that tells effects per declared unit; the intercept is unchanged.

        Parameters
        ----------
        units
            For each feature its name with the unit and the factor of its coefficient and standard
            error, as in `Schema.effect_units`. z and p do not change.

        Examples
        --------
        >>> from tacit.linear_model import Summary
        >>> table = Summary("LinearRegression", ("age",), (0.5,), (0.1,))
        >>> table.in_units([("age (per 10)", 0.1)]).rows()[0]["coefficient"]
        0.05
        """
        factors = [*(factor for _, factor in units), *[1.0] * (len(self.names) - len(units))]

        def scaled(numbers: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(x * factor for x, factor in zip(numbers, factors, strict=True))

        return replace(
            self,
            names=(*(name for name, _ in units), *self.names[len(units) :]),
            coefficients=scaled(self.coefficients),
            standard_errors=scaled(self.standard_errors),
        )

    @property
    def title(self) -> str:
        """The type of the model, and for two classes the class whose odds are told."""
        return self.model if self.positive is None else f"{self.model}: odds of {self.positive}"

    @property
    def comparisons(self) -> tuple[str, ...]:
        """One sentence per category, which names its reference value."""
        return tuple(f"{name}: compared with {of!r}." for name, of in self.references.items())

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for every term."""
        return [
            self._row(*term)
            for term in zip(self.names, self.coefficients, self.standard_errors, strict=True)
        ]

    def _row(self, name: str, value: float, error: float) -> dict[str, Any]:
        with np.errstate(divide="ignore", invalid="ignore"):
            z = float(np.divide(value, error))
        low, high = value - WITHIN * error, value + WITHIN * error
        row: dict[str, Any] = {
            "term": name,
            "coefficient": value,
            "standard_error": error,
            "z": z,
            "p": float(2 * ndtr(-abs(z))),
            "low": low,
            "high": high,
        }
        if self.ratio is not None:
            with np.errstate(over="ignore"):
                ratios = map(float, np.exp([value, low, high]))
            key = self.ratio.replace(" ", "_")
            row.update(zip((key, f"{key}_low", f"{key}_high"), ratios, strict=True))
        return row

    def to_frame(self) -> Any:
        """Return the rows as a pandas frame with the terms as its index."""
        import pandas as pd

        return pd.DataFrame(self.rows()).set_index("term")

    def __str__(self) -> str:
        header = ["term", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]"]
        if self.ratio is not None:
            header += [self.ratio, "[0.025", "0.975]"]
        lines = [header, *([_text(row) for row in map(dict.values, self.rows())])]
        notes = [_NOTE, *filter(None, [self.remark])]
        return "\n".join([self.title, *_aligned(lines), *self.comparisons, *notes])


def _text(row: Any) -> list[str]:
    name, *numbers = row
    digits = [4, 4, 3, 3, *(4 for _ in numbers[4:])]
    return [name, *(_number(x, n) for x, n in zip(numbers, digits, strict=True))]


def _number(x: float, digits: int) -> str:
    return f"{x:.{digits}f}" if abs(x) < 1e5 else f"{x:.3g}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return a table as lines of text: names left-aligned, numbers right-aligned."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    ]


INTERCEPT = "(intercept)"
# Set if records and budget were too few for the loss to take all residuals in full.
RESIDUAL_BOUND = "residual_bound_"


def remark_on_bias(model: Any) -> str:
    """Say in a sentence that the bound on residuals may bias a fit; empty if it does not.

    The bound follows from the plan and the released number of records.
    """
    bound = getattr(model, RESIDUAL_BOUND, None)
    if bound is None:
        return ""
    return (
        f"Residuals beyond {bound:.3g} count as about {bound:.3g}, because records are few for "
        "this budget: skewed labels bias the fit."
    )


class WithSummary:
    """Add `summary` to an estimator that can spend a share of its budget on standard errors."""

    _ratio: ClassVar[str | None] = None  # the name of exp(coefficient), if it has a meaning

    def summary(self) -> Summary:
        """Return coefficients with standard errors that include noise and sampling.

        Calling it costs nothing: the fit released all it needs. Coefficients are corrected for the
        ridge, so that they differ slightly from ``coef_``, which predicts.

        Raises
        ------
        ValueError
            If the fit spent no share of its budget on standard errors.
        """
        check_is_fitted(self)
        if not hasattr(self, "standard_errors_"):
            raise ValueError(
                "the fit spent no share of its budget on standard errors, and they cannot be "
                "computed afterwards without the records; fit anew with inference=0.1, say."
            )
        return summary_of(self)


def summary_of(model: Any) -> Summary:
    """Return the table of a fitted model's released estimates."""
    names = getattr(model, "feature_names_in_", None)
    n = int(model.n_features_in_)
    shown = [f"feature {i + 1}" for i in range(n)] if names is None else [str(s) for s in names]
    if len(model.estimates_) > n:
        shown.append(INTERCEPT)
    positive = positive_class(model)
    return Summary(
        type(model).__name__,
        tuple(shown),
        tuple(map(float, positive_sign(model) * model.estimates_ + 0.0)),
        tuple(map(float, model.standard_errors_)),
        model._ratio,
        positive=None if positive is None else str(positive),
        remark=remark_on_bias(model),
    )


def publish_errors(model: Any, errors: Errors | None, constant: float, labels: Any) -> None:
    """Set a fit's estimates and standard errors, intercept last, in the unit of the labels."""
    if errors is None:
        for name in ("estimates_", "standard_errors_"):
            vars(model).pop(name, None)  # left from an earlier fit
        return
    scale, shift = np.ones(errors.estimates.size), np.zeros(errors.estimates.size)
    if constant:
        scale[-1], shift[-1] = constant, getattr(labels, "middle", 0.0)
    model.estimates_ = scale * errors.estimates + shift
    model.standard_errors_ = scale * errors.standard_errors
