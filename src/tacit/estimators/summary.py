"""Show coefficients with their standard errors, test several terms and compare them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from tacit.arrays import Array
from tacit.erm.inference import WITHIN
from tacit.erm.plan import Errors
from tacit.estimators.parameters import positive_class, positive_sign

# Draws behind the critical value of joint intervals; it is then known to about 0.5 %.
_N_JOINT_DRAWS = 50_000
# Directions of a covariance matrix with less than this share of its largest are rounding.
_ROUNDING = 1e-12
# A term is to blame if this share of it is hidden. Of two columns that repeat each other, half of
# each is.
_BLAMED, _MOST_BLAMED = 0.3, 6
# LaTeX's special characters, as text.
_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_NOTE = "Standard errors cover sampling and the noise of the privacy mechanism."


class WaldTest(NamedTuple):
    """A test of the hypothesis that several coefficients are 0.

    Parameters
    ----------
    statistic
        b' V^-1 b for estimates b with covariance V.
    degrees_of_freedom
        The number of coefficients that vary independently.
    p
        The probability of a larger statistic under the hypothesis.

    Examples
    --------
    >>> from tacit.linear_model import Summary
    >>> import numpy as np
    >>> table = Summary(
    ...     "LinearRegression", ("a", "b"), (0.5, 0.1), (0.1, 0.1), covariance=np.eye(2) / 100
    ... )
    >>> print(table.wald_test(["a", "b"]))
    Wald test: chi2 = 26.00 with 2 degrees of freedom, p = 2.3e-06
    """

    statistic: float
    degrees_of_freedom: int
    p: float

    def __str__(self) -> str:
        plural = "" if self.degrees_of_freedom == 1 else "s"
        freedom = f"{self.degrees_of_freedom} degree{plural} of freedom"
        return f"Wald test: chi2 = {self.statistic:.2f} with {freedom}, p = {self.p:.2g}"


@dataclass(frozen=True)
class Summary:
    """A table: coefficient, standard error, z, p and 95 % interval of every term.

    Prints as text; `rows` are dictionaries, `to_frame` is a pandas frame, `to_csv` and `to_latex`
    are text for other programs. `wald_test`, `contrast` and `joint_intervals` are about several
    terms at once. All values were released by the fit, or are computed from releases.

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
    covariance
        The covariance matrix of the coefficients, if known; models saved before tacit 0.2 and
        locations have none.
    unidentified
        The share of each term along directions in which the released Hessian is below its noise.

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
    covariance: Array | None = field(default=None, compare=False, repr=False)
    unidentified: tuple[float, ...] = field(default=(), repr=False)

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
            covariance=None
            if self.covariance is None
            else self.covariance * np.outer(factors, factors),
        )

    @property
    def title(self) -> str:
        """The type of the model, and for two classes the class whose odds are told."""
        return self.model if self.positive is None else f"{self.model}: odds of {self.positive}"

    @property
    def comparisons(self) -> tuple[str, ...]:
        """One sentence per category, which names its reference value."""
        return tuple(f"{name}: compared with {of!r}." for name, of in self.references.items())

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences on the columns that make intervals wide, and on remedies; often none."""
        n_hidden = round(sum(self.unidentified))
        if not n_hidden:
            return ()
        n_terms = len(self.names)
        if n_hidden > n_terms / 2:
            return (
                f"The noise hides {n_hidden} of {n_terms} directions of the Hessian: there are too "
                "few records for this budget. Use fewer columns, a larger epsilon, or a larger "
                "share (inference).",
            )
        by_share = sorted(zip(self.unidentified, self.names, strict=True), key=lambda x: -x[0])
        blamed = [name for share, name in by_share[:_MOST_BLAMED] if share >= _BLAMED]
        if not blamed:
            return (
                f"The noise hides {n_hidden} of {n_terms} directions of the Hessian, which makes "
                "intervals wide; no single column is to blame. Use fewer columns, a larger "
                "epsilon, or a larger share (inference).",
            )
        listed = ", ".join(map(repr, blamed))
        levels = any(name.startswith(f"{of}=") for name in blamed for of in self.references)
        merged = "merge rare levels with others, " if levels else ""
        return (
            f"The noise hides {n_hidden} of {n_terms} directions of the Hessian, which makes all "
            f"intervals wider. The columns to blame hardly vary, or repeat others: {listed}.",
            f"What would help: {merged}drop such a column, a larger share (inference) or epsilon.",
        )

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

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV, and write them to a file if a path is given.

        Every number reads back to the same float.
        """
        buffer = io.StringIO()
        rows = self.rows()
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return _also_written(buffer.getvalue(), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """Return the table as a LaTeX tabular with rules of booktabs, and write it if asked.

        Each interval is one column, and names are escaped.
        """
        ratio = [] if self.ratio is None else [self.ratio, r"95\,\% interval"]
        header = ["term", "coefficient", "std. error", "$z$", "$p$", r"95\,\% interval", *ratio]
        lines = [rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule"]
        lines += [" & ".join(header) + r" \\", r"\midrule"]
        for row in self.rows():
            name, value, error, z, p, low, high, *ratios = row.values()
            p_text = r"$<$0.001" if p < 0.001 else f"{p:.3f}"
            cells = [_number(value, 4), _number(error, 4), _number(z, 2), p_text]
            cells.append(f"{_number(low, 4)} to {_number(high, 4)}")
            if ratios:
                cells += [
                    _number(ratios[0], 3),
                    f"{_number(ratios[1], 3)} to {_number(ratios[2], 3)}",
                ]
            lines.append(" & ".join([_in_latex(name), *cells]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [f"% {sentence}" for sentence in (*self.comparisons, _NOTE)]
        return _also_written("\n".join(lines) + "\n", path)

    def wald_test(self, terms: str | Sequence[str]) -> WaldTest:
        """Test whether all of several coefficients are 0.

        Parameters
        ----------
        terms
            Names of terms; the name of a category stands for all of its levels.
        """
        chosen = self._places(terms)
        covariance = self._covariance()[np.ix_(chosen, chosen)]
        estimates = np.array(self.coefficients)[chosen]
        values, axes = np.linalg.eigh(covariance)
        known = values > _ROUNDING * max(float(values[-1]), 0.0)
        statistic = float(np.sum((axes.T @ estimates)[known] ** 2 / values[known]))
        freedom = int(known.sum())
        return WaldTest(statistic, freedom, float(chdtrc(freedom, statistic)))

    def contrast(self, weights: Mapping[str, float], name: str | None = None) -> Summary:
        """Return a table of one row: a weighted sum of coefficients, with its standard error.

        Parameters
        ----------
        weights
            The weight of each term, such as ``{"ward=B": 1, "ward=C": -1}``; others have 0.
        name
            The name of the row; by default the sum in words.
        """
        if not weights:
            raise ValueError("weights is empty; name at least one term, such as {'age': 1}.")
        vector = np.zeros(len(self.names))
        for term, weight in weights.items():
            if not math.isfinite(weight):
                raise ValueError(f"the weight of {term!r} is {weight!r}; pass a finite number.")
            vector[self._place(term)] += weight
        variance = float(vector @ self._covariance() @ vector)
        words = " ".join(f"{weight:+g} {term}" for term, weight in weights.items())
        return Summary(
            self.model,
            (name or words,),
            (float(vector @ self.coefficients),),
            (math.sqrt(max(variance, 0.0)),),
            self.ratio,
            covariance=np.array([[max(variance, 0.0)]]),
        )

    def joint_intervals(
        self, terms: str | Sequence[str] | None = None, level: float = 0.95
    ) -> list[dict[str, Any]]:
        """Return intervals that hold all true coefficients together with probability ``level``.

        Each is the estimate plus or minus q standard errors, with q the quantile of the largest
        |z| under the released correlations (sup-t band). q is at most Bonferroni's.

        Parameters
        ----------
        terms
            The terms that the statement is about; by default all of them.
        level
            The probability, between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}; 0.95 is usual.")
        chosen = list(range(len(self.names))) if terms is None else self._places(terms)
        errors = np.array(self.standard_errors)[chosen]
        q = _largest_z(self._covariance()[np.ix_(chosen, chosen)], level)
        rows = []
        for place, error in zip(chosen, errors, strict=True):
            value = self.coefficients[place]
            low, high = float(value - q * error), float(value + q * error)
            rows.append({"term": self.names[place], "coefficient": value, "low": low, "high": high})
        return rows

    def _covariance(self) -> Array:
        if self.covariance is None:
            raise ValueError(
                f"this {self.model} has no covariance matrix of its coefficients: it is a "
                "location, or was saved before tacit 0.2; use the single intervals, or fit anew."
            )
        return self.covariance

    def _place(self, term: str) -> int:
        if term not in self.names:
            raise ValueError(f"{term!r} is not a term; choose from {', '.join(self.names)}.")
        return self.names.index(term)

    def _places(self, terms: str | Sequence[str]) -> list[int]:
        """Return the places of terms, and of all levels of categories, without repetition."""
        found: list[int] = []
        for term in [terms] if isinstance(terms, str) else terms:
            levels = [i for i, name in enumerate(self.names) if name.startswith(f"{term}=")]
            found += levels if levels and term not in self.names else [self._place(term)]
        if not found:
            raise ValueError("terms is empty; name at least one term.")
        return list(dict.fromkeys(found))

    def __str__(self) -> str:
        header = ["term", "coef", "std err", "z", "P>|z|", "[0.025", "0.975]"]
        if self.ratio is not None:
            header += [self.ratio, "[0.025", "0.975]"]
        lines = [header, *([_text(row) for row in map(dict.values, self.rows())])]
        notes = *self.comparisons, *self.advice, _NOTE, *filter(None, [self.remark])
        return "\n".join([self.title, *_aligned(lines), *notes])


def _largest_z(covariance: Array, level: float) -> float:
    """Return the quantile of the largest |z| of normal variables with this covariance."""
    d = len(covariance)
    bonferroni = float(-ndtri((1 - level) / (2 * d)))
    stds = np.sqrt(np.diagonal(covariance))
    if d == 1 or not np.all(stds > 0.0):
        return bonferroni
    values, axes = np.linalg.eigh(covariance / np.outer(stds, stds))
    root = axes * np.sqrt(np.maximum(values, 0.0))
    # Seeded: the same release always gives the same intervals.
    rng = np.random.default_rng(d)
    largest = [  # in parts, so that memory stays small
        np.abs(rng.standard_normal((1000, d)) @ root.T).max(axis=1)
        for _ in range(0, _N_JOINT_DRAWS, 1000)
    ]
    return min(float(np.quantile(np.concatenate(largest), level)), bonferroni)


def _also_written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


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
        covariance=getattr(model, "covariance_", None),
        unidentified=tuple(map(float, getattr(model, "unidentified_", ()))),
    )


def publish_errors(model: Any, errors: Errors | None, constant: float, labels: Any) -> None:
    """Set a fit's estimates and standard errors, intercept last, in the unit of the labels."""
    for name in ("estimates_", "standard_errors_", "covariance_", "unidentified_"):
        vars(model).pop(name, None)  # left from an earlier fit
    if errors is None:
        return
    scale, shift = np.ones(errors.estimates.size), np.zeros(errors.estimates.size)
    if constant:
        scale[-1], shift[-1] = constant, getattr(labels, "middle", 0.0)
    model.estimates_ = scale * errors.estimates + shift
    model.standard_errors_ = scale * errors.standard_errors
    if errors.covariance is not None:
        model.covariance_ = errors.covariance * np.outer(scale, scale)
    if errors.unidentified is not None:
        model.unidentified_ = errors.unidentified
