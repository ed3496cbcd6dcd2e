"""A private kernel support-vector classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.erm import FeasibleSet, Mechanism
from tacit.features import Kernel
from tacit.kernel._kernel_model import KernelClassifier
from tacit.linear_model import LinearSVC
from tacit.privacy import AnyAccountant, Relation


class KernelSVC(KernelClassifier):
    """Support-vector classification of two classes on random Fourier features, with a guarantee.

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
    epsilon, delta, smoothing, relation, classes, n_records, mechanism, fit_intercept, \
regularization, constraint, class_weight, max_weight, accountant, random_state, verbose
        As in `LinearSVC`.

    Attributes
    ----------
    seed_, bandwidth_
        The seed and the bandwidth in use; with the parameters they are the map of rows.
    row_norm_
        The greatest norm of the rows to come, as declared.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `LinearSVC`, of the features, whose rows are of norm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.kernel import KernelSVC
    >>> X = np.random.default_rng(0).uniform(-0.7, 0.7, (20_000, 2))
    >>> y = np.hypot(X[:, 0], X[:, 1]) < 0.5
    >>> model = KernelSVC(1.0, 1e-6, row_norm=1.0, n_frequencies=32, seed=0).fit(X, y)
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
        smoothing: float = 0.5,
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
        self.smoothing = smoothing
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

    def __sklearn_tags__(self) -> Any:
        """Declare two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _estimator(self) -> type[LinearSVC]:
        return LinearSVC
