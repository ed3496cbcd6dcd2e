"""A private linear support-vector classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.losses import SmoothHingeLoss
from tacit.linear_model._classifier import Classes, Classifier, check_two_classes
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.public_facts import Fact
from tacit.records import Bounds


class LinearSVC(Classifier):
    """Linear support-vector classification of two classes, with a privacy guarantee.

    Minimises the sum of Huber-smoothed hinge losses plus (regularization / 2) ||w||^2. The
    parameters and attributes are those of `LogisticRegression`, and

    Parameters
    ----------
    smoothing : float, default=0.5
        The half-width over which the hinge's corner is rounded; smaller is closer to the hinge
        and costs more noise.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LinearSVC
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> y = X[:, 0] > 0
    >>> LinearSVC(epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
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

    def _loss(self, budget: Budget, bounds: Bounds) -> SmoothHingeLoss:
        return SmoothHingeLoss(self.smoothing)

    def _expected_labels(self) -> Classes:
        return Classes(Fact(np.arange(2), "the list of classes"))  # there are two, whichever

    def _check_classes(self, n_classes: int) -> None:
        remedy = ": for more, use LogisticRegression, which releases all of them jointly."
        check_two_classes(self, n_classes, remedy)
