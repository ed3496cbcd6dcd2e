"""What estimators with standard errors share: publishing them, and `summary`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tacit.erm.laws import Errors
from tacit.linear_model.summary import Summary

INTERCEPT = "(intercept)"


class WithSummary:
    """Adds `summary` to an estimator whose fit may keep a share of its budget for errors."""

    _ratio: ClassVar[str | None] = None  # what exp(coefficient) is called, if it means something

    def summary(self) -> Summary:
        """Return coefficients with standard errors, noise and sampling together.

        Costs nothing: the fit released what it takes. Coefficients are those without the pull of
        the ridge, so they differ a little from ``coef_``, which predicts.

        Raises
        ------
        ValueError
            If the fit kept nothing of its budget for them.
        """
        check_is_fitted(self)
        if not hasattr(self, "standard_errors_"):
            raise ValueError(
                "the fit kept no share of its budget for standard errors, and they cannot be had "
                "afterwards without the records; fit anew with inference=0.1, say."
            )
        return summary_of(self)


def summary_of(model: Any) -> Summary:
    """Return the table of a fitted model's released estimates."""
    names = getattr(model, "feature_names_in_", None)
    n = int(model.n_features_in_)
    shown = [f"feature {i + 1}" for i in range(n)] if names is None else [str(s) for s in names]
    if len(model.estimates_) > n:
        shown.append(INTERCEPT)
    return Summary(
        type(model).__name__,
        tuple(shown),
        tuple(map(float, model.estimates_)),
        tuple(map(float, model.standard_errors_)),
        model._ratio,
    )


def publish_errors(model: Any, errors: Errors | None, constant: float, labels: Any) -> None:
    """Set a fit's estimates and standard errors, the intercept last, in the labels' unit."""
    if errors is None:
        for name in ("estimates_", "standard_errors_"):
            vars(model).pop(name, None)  # of an earlier fit
        return
    scale, shift = np.ones(errors.estimates.size), np.zeros(errors.estimates.size)
    if constant:
        scale[-1], shift[-1] = constant, getattr(labels, "middle", 0.0)
    model.estimates_ = scale * errors.estimates + shift
    model.standard_errors_ = scale * errors.standard_errors
