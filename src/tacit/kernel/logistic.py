"""Private kernel logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.erm import FeasibleSet, Mechanism
from tacit.features import Kernel
from tacit.kernel._kernel_model import KernelClassifier
from tacit.linear_model import LogisticRegression
from tacit.privacy import AnyAccountant, Relation


class KernelLogisticRegression(KernelClassifier):
    """Logistic regression on random Fourier features, with a differential-privacy guarantee.

    Parameters
    ----------
    kernel : Kernel or None
        `GaussianKernel`, `MaternKernel` or `LaplacianKernel` of `tacit.features`; None is
        GaussianKernel(). Its bandwidth is declared, or comes from public bounds, the ranges that
        come with a table or ``row_norm``; never from records.
    n_frequencies : int, default=128
        How many frequencies, each with two features; see `RandomFourierFeatures`.
    seed : int or None
        Of the frequencies, which are public; None draws one.
    row_norm : float or None
        The greatest norm of the rows to come, for the bandwidth alone: rows are not scaled down.
        None is 1.0, with an `UndeclaredWarning` where the bandwidth is derived from it.
    epsilon, delta, relation, classes, n_records, mechanism, fit_intercept, regularization, \
constraint, class_weight, max_weight, accountant, random_state, verbose
        As in `LogisticRegression`.

    Attributes
    ----------
    seed_, bandwidth_
        The seed and the bandwidth in use; with the parameters they are the map of rows.
    row_norm_
        The greatest norm of the rows to come, as declared.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `LogisticRegression`, of the features, whose rows are of norm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.kernel import KernelLogisticRegression
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, (20_000, 2))
    >>> y = np.hypot(X[:, 0], X[:, 1]) < 0.5
    >>> model = KernelLogisticRegression(1.0, 1e-6, row_norm=1.0, n_frequencies=32).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        kernel: Kernel | None = None,
        n_frequencies: int = 128,
        seed: int | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        classes: Sequence[Any] | str | None = None,
        n_records: int | str | None = None,
        mechanism: str | Mechanism = "auto",
        fit_intercept: bool = True,
        regularization: float | None = None,
        constraint: FeasibleSet | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        max_weight: float | None = None,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.n_frequencies = n_frequencies
        self.seed = seed
        self.relation = relation
        self.row_norm = row_norm
        self.classes = classes
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.regularization = regularization
        self.constraint = constraint
        self.class_weight = class_weight
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _estimator(self) -> type[LogisticRegression]:
        return LogisticRegression

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of every class for every record."""
        return self._ask("predict_proba", X)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the logarithms of `predict_proba`."""
        return self._ask("predict_log_proba", X)
