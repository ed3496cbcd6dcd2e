"""The shell of kernel machines: a public map of rows, and a linear model of what it makes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.erm import Plan
from tacit.features import Domain, Kernel, RandomFourierFeatures
from tacit.features.domain import declared_domain, domain_of
from tacit.features.kernels import kernel_of
from tacit.linear_model._mapped import ask_linear, publish_fit, refuse_sources
from tacit.linear_model._tables import note_columns
from tacit.public_facts import check_shape, informed, row_norm_of
from tacit.records import MappedTable, RowMap
from tacit.table_facts import EncodedTable

_NORM = 1.0  # of every row that the map makes
_FOR_BANDWIDTH = "the bandwidth is derived from it where the kernel declares none"


class KernelModel(BaseEstimator):
    """A linear estimator of random Fourier features: Algorithm 3 of Chaudhuri et al. (2011).

    Proof of privacy: the map is public, drawn before a record is read, and makes each row of one
    record alone, of norm 1; what the linear estimator promises of rows of norm 1 is what is
    promised. Parameters are those of the members, as scikit-learn reads them off ``__init__``.
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
        """Return the linear estimator, told what this one was told."""
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
        """Return where rows may be, as the table says or as declared."""
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
        """Return what a fit would run, what it would cost and what to expect, without data.

        Parameters
        ----------
        n_features
            Columns of the table to come.
        n_records
            Rows of it, if known; sharpens the predicted risk and changes nothing else.
        """
        check_shape(n_features, n_records)
        self._domain(None, n_features)  # warns of a row norm that nobody declared
        plan: Plan = self._linear().plan(2 * self.n_frequencies, n_records)
        return plan

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, unit: Any = None) -> Self:
        """Fit to records ``X`` (one a row) with labels ``y``, read when the plan is charged.

        ``sample_weight`` and ``unit`` as in the linear estimators.
        """
        refuse_sources(self, X, "RandomFourierFeatures")
        told = informed(self, X)
        linear = told._linear()
        table, names = note_columns(self, X, y, unit=unit)
        domain, seed = told._domain(X, table.n_columns), self._drawn_seed()
        bandwidth = self._kernel().public_bandwidth(domain)
        function = self._row_map(table.n_columns, bandwidth, seed)
        linear.fit(MappedTable(table, function, names), y, sample_weight)
        self.row_norm_, self.bandwidth_, self.seed_ = domain.row_norm, bandwidth, seed
        publish_fit(self, linear)
        return self

    def _ask(self, method: str, X: Any) -> npt.NDArray[Any]:
        """Return what the linear estimator says of the features of rows, some at a time."""
        check_is_fitted(self)
        function = self._row_map(self.n_features_in_, self.bandwidth_, self.seed_)
        return ask_linear(self, self._linear(), function, _NORM, method, X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the predicted class or number of every record."""
        return self._ask("predict", X)


class KernelClassifier(ClassifierMixin, KernelModel):
    """A kernel machine of classes."""

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the score of every record: one number, or one per class."""
        return self._ask("decision_function", X)


def term_names(model: KernelModel) -> tuple[str, ...]:
    """Return what the coefficients of a fitted model are of."""
    features = RandomFourierFeatures(model.kernel, model.n_frequencies)
    return features.output(declared_domain(("x",), None, None)).names
