"""Compute a private PCA from a noisy second moment."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tacit import checks
from tacit.engine import Plan, norm_in_words, without_noise
from tacit.estimators.parameters import row_norm_of
from tacit.preprocessing._base import (
    Job,
    PrivateStep,
    facts_of_rows,
    facts_with,
    rows_to_transform,
)
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, NoisySum, SecondMoment, Session
from tacit.queries.moments import unpack
from tacit.records import Bounds, MemoryRecords
from tacit.records.lazy_table import UnreadTable
from tacit.row_clipping import clipped_rows
from tacit.table_facts import TableFacts

Array = npt.NDArray[np.float64]
# Constant column that carries the mean, relative to the row norm: 25 % more noise on the moment.
_CONSTANT = 0.5


class PrivatePCA(PrivateStep):
    """Project rows on the leading eigenvectors of their noisy second moment.

    Analyze Gauss (Dwork, Talwar, Thakurta and Zhang 2014): symmetric Gaussian noise on the sum of
    x x' over rows scaled down to ``row_norm``. The eigenvectors are post-processing.

    Parameters
    ----------
    n_components : int, default=2
        The number of directions, at most the number of columns.
    epsilon, delta, relation, accountant, random_state
        As in `tacit.linear_model.LogisticRegression`; delta must be above 0.
    row_norm : float or None
        Longer rows are scaled down to it. None is 1.0, with an `UndeclaredWarning`; the facts of
        a table take precedence.
    centered : bool, default=False
        Whether to subtract a mean, which is released together with the moment. Columns of a
        `SchemaEncoder` and of other private steps are near 0, where this costs more than it gains.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The released directions, each of length 1.
    mean_ : array
        The released mean that is subtracted, or zeros.
    row_norm_ : float
        The norm to which rows are scaled down.
    privacy_ : Guarantee
        The guarantee of the fit.

    Notes
    -----
    **Guarantee**

    1. No output row is longer than ``row_norm``: projections are no longer than rows, and rows
       that grew by subtracting the mean are scaled down.
    2. A missing value counts as 0.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing import PrivatePCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(0, 1, (20_000, 1)) * [0.6, 0.8, 0] + rng.normal(0, 0.1, (20_000, 3))
    >>> PrivatePCA(1, epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X).components_.round(1) + 0.0
    array([[0.6, 0.8, 0. ]])
    """

    _released: ClassVar[tuple[str, ...]] = (
        "components_",
        "mean_",
        "row_norm_",
        "n_features_in_",
        "feature_names_in_",
    )

    def __init__(
        self,
        n_components: int = 2,
        epsilon: float | None = None,
        delta: float = 1e-6,
        *,
        row_norm: float | None = None,
        centered: bool = False,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.row_norm = row_norm
        self.centered = centered
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state

    def _plan(self, budget: Budget, n_features: int) -> Plan:
        checks.count("n_components", self.n_components, most=n_features)
        # The cost of a query does not depend on the row norm, which a fit declares.
        facts = facts_of_rows(n_features, budget)
        if budget.is_infinite:
            return replace(without_noise(budget), facts=facts)
        if budget.is_pure:
            raise ValueError(
                "PrivatePCA adds Gaussian noise, which needs delta > 0; pass delta=1e-6, or leave "
                "the step out. (Wishart noise, elsewhere claimed to be pure, is not private.)"
            )
        z = gaussian_multiplier(budget)
        moment = NoisySum(SecondMoment(), GaussianNoise(z))
        return Plan(
            "pca",
            moment.event(facts),
            budget,
            f"{self.n_components} directions of a second moment with symmetric Gaussian noise",
            {"noise_multiplier": z},
            notes=() if self.row_norm is None else (norm_in_words(self.row_norm),),
            facts=facts,
            queries={"second moment": moment},
        )

    def _job(
        self, resolved: Self, budget: Budget, known: TableFacts, table: UnreadTable
    ) -> Job[_Found]:
        norm = row_norm_of(resolved.row_norm)
        bounds = Bounds(row_norm=norm, intercept=_CONSTANT * norm if self.centered else 0.0)
        facts = Facts(bounds, table.n_columns, budget.relation)
        plan = replace(resolved._plan(budget, table.n_columns), facts=facts)

        def work(session: Session) -> _Found:
            if budget.is_infinite:
                moment = session.without_noise(_exact_moment)
            else:
                packed = session.ask(plan.queries["second moment"], "second moment")
                moment = unpack(np.asarray(packed), facts.n_coordinates)
            return _directions(moment, bounds, self.n_components)

        def keep(found: _Found) -> None:
            self.components_, self.mean_, self.row_norm_ = found.directions, found.mean, norm

        return Job(plan, work, keep)

    def _filled(self, rows: Array) -> Array:
        return np.nan_to_num(rows)

    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows along the directions."""
        check_is_fitted(self)
        rows = clipped_rows(np.nan_to_num(rows_to_transform(self, X)), self.row_norm_)
        along: Array = (rows - self.mean_) @ self.components_.T
        return clipped_rows(along, self.row_norm_)

    def facts_out(self, facts: TableFacts | None = None) -> TableFacts:
        """Return the public facts of the output rows."""
        if facts is None:
            check_is_fitted(self)
            norm = self.row_norm_
        else:
            checks.count("n_components", self.n_components, most=len(facts.names))
            declared = self.row_norm is not None and not math.isfinite(facts.row_norm)
            norm = row_norm_of(self.row_norm) if declared else facts.row_norm
        names = self.get_feature_names_out().tolist()
        return facts_with(facts, names, norm, [(-norm, norm)] * self.n_components)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return a name for each direction."""
        return np.array([f"pca{place}" for place in range(self.n_components)], dtype=object)


@dataclass(frozen=True, eq=False)
class _Found:
    directions: Array
    mean: Array


def _exact_moment(records: MemoryRecords) -> Array:
    (moment,) = records.sum(lambda block: (block.gram(np.ones(block.n_rows)),))
    return moment


def _directions(moment: Array, bounds: Bounds, n_directions: int) -> _Found:
    """Return the leading directions of a moment, centred if a constant column carries the mean.

    With rows (x, c), the last column of the moment is c times the sum of x, and its last entry
    is c^2 times n.
    """
    if not bounds.intercept:
        return _Found(top_directions(moment, n_directions), np.zeros(len(moment)))
    n = max(moment[-1, -1] / bounds.intercept**2, 1.0)
    mean = clipped_rows(moment[None, :-1, -1] / (bounds.intercept * n), bounds.row_norm)[0]
    spread = moment[:-1, :-1] - n * np.outer(mean, mean)
    return _Found(top_directions(spread, n_directions), mean)


def top_directions(moment: Array, n_directions: int) -> Array:
    """Return unit eigenvectors of the largest eigenvalues as rows, the largest first.

    The largest entry of each is positive, so that equal moments give equal directions.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.preprocessing.pca import top_directions
    >>> top_directions(np.diag([1.0, 9.0, 4.0]), 2)
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    _, vectors = np.linalg.eigh(moment)
    leading = vectors[:, ::-1][:, :n_directions].T
    largest = np.abs(leading).argmax(axis=1)
    signs = np.where(leading[np.arange(len(leading)), largest] < 0, -1.0, 1.0)
    directions: Array = leading * signs[:, None] + 0.0
    return directions
