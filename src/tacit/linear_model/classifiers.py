"""Private linear classifiers: logistic regression and the support-vector machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.erm import FeasibleSet, Mechanism
from tacit.erm.losses import LogisticLoss, Loss, SmoothHingeLoss, SoftmaxLoss
from tacit.erm.minimization import MechanismName
from tacit.estimators.parameters import classes_of
from tacit.estimators.predictors import Classes, Classifier, Probabilities, check_two_classes
from tacit.estimators.summary import WithSummary
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records import Bounds


class LogisticRegression(WithSummary, Probabilities, Classifier):
    """Logistic regression with a differential-privacy guarantee.

    Minimises the sum of logistic losses (cross-entropy for three or more classes, in one joint
    release) plus (regularization / 2) ||w||^2. The planner chooses the cheapest place for noise.

    Parameters
    ----------
    epsilon : float or None, default=None
        The privacy budget; ``math.inf`` for none. None is 1.0, and in a pipeline with a budget a
        share of that.
    delta : float, default=1e-6
        The probability with which the guarantee may fail; 0 for a pure guarantee.
    relation : Relation or str, default="add_remove"
        The relation between neighbouring data sets.
    row_norm : float or None
        Rows longer than this are scaled down to it, in `fit` and in `predict`. None is 1.0, with an
        `UndeclaredWarning`.
    classes : sequence, "infer" or None
        The possible labels, a public fact. None takes them from labels of type bool, pandas
        Categorical or polars Enum. Records with other labels do not count.
    n_records : int, "infer" or None
        The number of records if it is public, or of people if `fit` gets a ``unit``; required under
        REPLACE.
    mechanism : str or Mechanism, default="auto"
        "auto", the name of a mechanism (see "Which mechanism when"), or a configured mechanism.
    fit_intercept : bool, default=True
        Whether to append a constant coordinate of a quarter of the row norm.
    regularization : float or None
        In SUM form, intercept included, relative to weighted losses (with weights of at most 1 if
        classes are "balanced"); by default from theory.
    constraint : FeasibleSet or None
        The feasible set of the weights.
    class_weight : dict, "balanced" or None
        The weights of classes: public numbers, 1 for a class that is not named. "balanced" counts
        the classes with a hundredth of the budget and weights each by n / (K count), at most 10.
        Only the ratio to the greatest weight matters.
    max_weight : float or None
        A bound on the ``sample_weight`` passed to `fit`; greater weights are clipped to it. None is
        1.0, with an `UndeclaredWarning`.
    inference : float, default=0.0
        The share of the budget (of mu^2) for standard errors, which `summary` shows; 0.1 is
        usual. It needs two classes, a delta and no constraint.
    accountant : Accountant or None
        A budget shared with other fits; it refuses before anything is read.
    random_state : int or None
        For tests: seeds the noise and voids the guarantee.
    verbose : int, default=0
        Print the plan and the guarantee to standard error.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    privacy_ : Guarantee
        The guarantee of the fit.
    plan_ : Plan or None
        The plan that was run; None without noise.
    estimates_, standard_errors_ : array
        With ``inference``: the values of `summary`, the intercept last.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 3))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> bool(model.privacy_.epsilon(1e-6) <= 1.0)
    True
    """

    _ratio = "odds ratio"

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        classes: Sequence[Any] | str | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
        fit_intercept: bool = True,
        regularization: float | None = None,
        constraint: FeasibleSet | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        max_weight: float | None = None,
        inference: float = 0.0,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
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
        self.inference = inference
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _loss(self, budget: Budget, bounds: Bounds) -> Loss:
        n_classes = bounds.n_classes
        assert n_classes is not None  # a classifier's bounds
        return LogisticLoss() if n_classes == 2 else SoftmaxLoss(n_classes)


class LinearSVC(Classifier):
    """Linear support-vector classification of two classes, with a privacy guarantee.

    Minimises the sum of Huber-smoothed hinge losses plus (regularization / 2) ||w||^2. The
    parameters and attributes are those of `LogisticRegression`, and

    Parameters
    ----------
    smoothing : float, default=0.5
        The half-width of the smoothed corner; a smaller value is closer to the hinge and needs more
        noise.

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
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        smoothing: float = 0.5,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        classes: Sequence[Any] | str | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
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
        return Classes(classes_of([0, 1], None))  # any two classes

    def _check_classes(self, n_classes: int) -> None:
        remedy = ": for more, use LogisticRegression, which releases all of them jointly."
        check_two_classes(self, n_classes, remedy)
