"""Private kernel ridge regression."""

from __future__ import annotations

from sklearn.base import RegressorMixin

from tacit.erm import FeasibleSet, Mechanism
from tacit.features import Kernel
from tacit.kernel._kernel_model import KernelModel
from tacit.linear_model import Ridge
from tacit.privacy import AnyAccountant, Relation


class KernelRidge(RegressorMixin, KernelModel):
    """Ridge regression on random Fourier features, with a differential-privacy guarantee.

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
    epsilon, delta, alpha, label_range, relation, n_records, mechanism, fit_intercept, constraint, \
max_weight, accountant, random_state, verbose
        As in `Ridge`.

    Attributes
    ----------
    seed_, bandwidth_
        The seed and the bandwidth in use; with the parameters they are the map of rows.
    row_norm_
        The greatest norm of the rows to come, as declared.
    coef_, intercept_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `Ridge`, of the features, whose rows are of norm 1.

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
        epsilon: float = 1.0,
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
        mechanism: str | Mechanism = "auto",
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
