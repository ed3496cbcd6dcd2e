"""Private kernel machines: a public feature map, and a linear model of its features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.erm import FeasibleSet, Mechanism, Plan
from tacit.erm.minimization import MechanismName
from tacit.estimators.linear import ask_linear, publish_fit, refuse_sources
from tacit.estimators.parameters import check_shape, row_norm_of, with_table_facts
from tacit.estimators.tables import note_columns
from tacit.features import Domain, Kernel, RandomFourierFeatures
from tacit.features.feature_map import declared_domain, domain_of
from tacit.features.kernels import kernel_of
from tacit.linear_model import LinearSVC, LogisticRegression, Ridge
from tacit.privacy import AnyAccountant, Relation
from tacit.records import RowMap
from tacit.records.lazy_table import MappedTable
from tacit.table_facts import EncodedTable

_NORM = 1.0  # norm of every row of features
_FOR_BANDWIDTH = "the bandwidth is derived from it where the kernel declares none"


class KernelModel(BaseEstimator):
    """A linear estimator on random Fourier features: Algorithm 3 of Chaudhuri et al. (2011).

    Proof of privacy: the map is public and drawn before a record is read. It makes each row from
    one record alone, with norm 1. The guarantee of the linear estimator for rows of norm 1
    therefore holds. Parameters are those of the members, since scikit-learn reads them off
    ``__init__``.
    """

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _estimator(self) -> type[Any]:
        """Return the linear estimator."""

    def _linear(self) -> Any:
        """Return the linear estimator, with the parameters of this one."""
        estimator, own = self._estimator(), self.get_params(deep=False)
        shared = {name: own[name] for name in estimator().get_params(deep=False) if name in own}
        return estimator(**{**shared, "row_norm": _NORM})

    def _row_map(self, n_columns: int, bandwidth: float, seed: int) -> RowMap:
        features = RandomFourierFeatures(self._kernel(), self.n_frequencies, seed=seed)
        domain = declared_domain([""] * n_columns, None, None)
        return features.row_map(domain, bandwidth)

    def _kernel(self) -> Kernel:
        return kernel_of(self.kernel)

    def _domain(self, X: Any, n_columns: int) -> Domain:
        """Return the domain of the rows: that of the table, or the declared one."""
        if isinstance(X, EncodedTable):
            return domain_of(X.facts)
        is_needed = self.row_norm is not None or self._kernel().bandwidth is None
        norm = row_norm_of(self.row_norm, _FOR_BANDWIDTH) if is_needed else None
        return declared_domain([""] * n_columns, norm, None)

    def _drawn_seed(self) -> int:
        if self.seed is not None:
            return checks.count("seed", self.seed, least=0)
        if self.random_state is not None:
            return int(check_random_state(self.random_state).randint(2**31))
        return RandomFourierFeatures().fit().seed_

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return the plan of a fit, with its cost and predicted risk, without data.

        Parameters
        ----------
        n_features
            The number of columns of the table.
        n_records
            The number of rows, if known; it sharpens the predicted risk and changes nothing else.
        """
        check_shape(n_features, n_records)
        self._kernel()  # refuses what is none
        self._domain(None, n_features)  # warns if the row norm is not declared
        plan: Plan = self._linear().plan(2 * self.n_frequencies, n_records)
        return plan

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Self:
        """Fit to records ``X`` (one per row) with labels ``y``, read after the plan is charged.

        ``sample_weight`` and ``unit`` as in the linear estimators.
        """
        refuse_sources(self, X, "RandomFourierFeatures")
        resolved = with_table_facts(self, X)
        linear = resolved._linear()
        table, names = note_columns(self, X, y, unit=unit)
        domain, seed = resolved._domain(X, table.n_columns), self._drawn_seed()
        bandwidth = self._kernel().public_bandwidth(domain)
        function = self._row_map(table.n_columns, bandwidth, seed)
        linear.fit(MappedTable(table, function, names), y, sample_weight)
        self.row_norm_, self.bandwidth_, self.seed_ = domain.row_norm, bandwidth, seed
        publish_fit(self, linear)
        return self

    def _ask(self, method: str, X: Any) -> npt.NDArray[Any]:
        """Return the linear estimator's output for the features of rows, computed in blocks."""
        check_is_fitted(self)
        function = self._row_map(self.n_features_in_, self.bandwidth_, self.seed_)
        return ask_linear(self, self._linear(), function, _NORM, method, X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predicted class or number of every record."""
        return self._ask("predict", X)


class KernelClassifier(ClassifierMixin, KernelModel):
    """Base class of kernel classifiers."""

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the score of every record: one number, or one per class."""
        return self._ask("decision_function", X)


def term_names(model: KernelModel) -> tuple[str, ...]:
    """Return the names of the terms of a fitted model's coefficients."""
    features = RandomFourierFeatures(model.kernel, model.n_frequencies)
    return features.output(declared_domain(("x",), None, None)).names


class KernelLogisticRegression(KernelClassifier):
    """Logistic regression on random Fourier features, with a differential-privacy guarantee.

    Parameters
    ----------
    kernel : Kernel or None
        `GaussianKernel`, `MaternKernel` or `LaplacianKernel` of `tacit.features`; None is
        GaussianKernel(). Its bandwidth is declared, or derived from public bounds: the ranges of a
        table, or ``row_norm``; never from records.
    n_frequencies : int, default=128
        The number of frequencies, each with two features; see `RandomFourierFeatures`.
    seed : int or None
        The seed of the frequencies, which are public; None draws one.
    row_norm : float or None
        The greatest norm of a row, for the bandwidth alone: rows are not scaled down. None is 1.0,
        with an `UndeclaredWarning` if the bandwidth is derived from it.
    epsilon, delta, relation, classes, n_records, mechanism, fit_intercept, regularization, \
constraint, class_weight, max_weight, accountant, random_state, verbose
        As in `LogisticRegression`.

    Attributes
    ----------
    seed_, bandwidth_
        The seed and the bandwidth in use; with the parameters they determine the feature map.
    row_norm_
        The declared greatest norm of a row.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `LogisticRegression`, for features of norm 1.

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
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        kernel: Kernel | None = None,
        n_frequencies: int = 128,
        seed: int | None = None,
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


class KernelSVC(KernelClassifier):
    """Support-vector classification of two classes on random Fourier features, with a guarantee.

    Parameters
    ----------
    kernel : Kernel or None
        `GaussianKernel`, `MaternKernel` or `LaplacianKernel` of `tacit.features`; None is
        GaussianKernel(). Its bandwidth is declared, or derived from public bounds: the ranges of a
        table, or ``row_norm``; never from records.
    n_frequencies : int, default=128
        The number of frequencies, each with two features; see `RandomFourierFeatures`.
    seed : int or None
        The seed of the frequencies, which are public; None draws one.
    row_norm : float or None
        The greatest norm of a row, for the bandwidth alone: rows are not scaled down. None is 1.0,
        with an `UndeclaredWarning` if the bandwidth is derived from it.
    epsilon, delta, smoothing, relation, classes, n_records, mechanism, fit_intercept, \
regularization, constraint, class_weight, max_weight, accountant, random_state, verbose
        As in `LinearSVC`.

    Attributes
    ----------
    seed_, bandwidth_
        The seed and the bandwidth in use; with the parameters they determine the feature map.
    row_norm_
        The declared greatest norm of a row.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `LinearSVC`, for features of norm 1.

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
        epsilon: float | None = None,
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


class KernelRidge(RegressorMixin, KernelModel):
    """Ridge regression on random Fourier features, with a differential-privacy guarantee.

    Parameters
    ----------
    kernel : Kernel or None
        `GaussianKernel`, `MaternKernel` or `LaplacianKernel` of `tacit.features`; None is
        GaussianKernel(). Its bandwidth is declared, or derived from public bounds: the ranges of a
        table, or ``row_norm``; never from records.
    n_frequencies : int, default=128
        The number of frequencies, each with two features; see `RandomFourierFeatures`.
    seed : int or None
        The seed of the frequencies, which are public; None draws one.
    row_norm : float or None
        The greatest norm of a row, for the bandwidth alone: rows are not scaled down. None is 1.0,
        with an `UndeclaredWarning` if the bandwidth is derived from it.
    epsilon, delta, alpha, label_range, relation, n_records, mechanism, fit_intercept, constraint, \
max_weight, accountant, random_state, verbose
        As in `Ridge`.

    Attributes
    ----------
    seed_, bandwidth_
        The seed and the bandwidth in use; with the parameters they determine the feature map.
    row_norm_
        The declared greatest norm of a row.
    coef_, intercept_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `Ridge`, for features of norm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.kernel import KernelRidge
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 1))
    >>> y = np.cos(3 * X[:, 0])
    >>> known = {"row_norm": 1.0, "label_range": (-1, 1)}
    >>> KernelRidge(1.0, 1e-6, **known, n_frequencies=32, seed=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        kernel: Kernel | None = None,
        n_frequencies: int = 128,
        seed: int | None = None,
        alpha: float | None = None,
        label_range: tuple[float, float] | str | None = None,
        relation: Relation | str = "add_remove",
        row_norm: float | None = None,
        n_records: int | str | None = None,
        mechanism: MechanismName | Mechanism = "auto",
        fit_intercept: bool = True,
        constraint: FeasibleSet | None = None,
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
        self.alpha = alpha
        self.label_range = label_range
        self.relation = relation
        self.row_norm = row_norm
        self.n_records = n_records
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _estimator(self) -> type[Ridge]:
        return Ridge
