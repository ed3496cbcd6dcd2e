"""The problems of the regret benchmark: public tables and tables drawn from known laws.

The ten regressions follow Wang (2018) to the letter where the paper is explicit: labels divided by
their greatest size, columns standardised without privacy, rows scaled to norm 1, no intercept,
delta = 1e-6, the mean over ten folds of the mean squared error on the fold left out, ridge with
lam = 1 for non-private. A repeat is ten fits, one a fold, with folds of its own: the paper's are
not known. The other problems have one split, and a repeat is one fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import diabetes130
import numpy as np
import uci_regression
from diabetes130 import load_diabetes130
from uci_regression import load_uci_regression

from tacit.datasets import Dataset, load_adult, load_kddcup99, load_mnist
from tacit.datasets.base import Scaled, encode, feature_names
from tacit.erm.minimization import MechanismName
from tacit.linear_model import LinearRegression, LogisticRegression

DELTA = uci_regression.DELTA
SQUARED, ZERO_ONE, LOG_LOSS = "mean square", "0-1", "log loss"
WANG_EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
ENDLESS = 100.0  # an epsilon at which noise should no longer be seen


@dataclass(frozen=True)
class Problem:
    """A table with what is public about it, and how error is measured on it."""

    name: str
    load: Callable[[int, int], Dataset]  # of the repeat and the fold
    epsilons: tuple[float, ...]
    row_norm: float
    measures: tuple[str, ...]
    label_range: tuple[float, float] | None = None  # of numbers; else there are classes
    classes: tuple[Any, ...] = (False, True)
    fit_intercept: bool = True
    n_folds: int = 1

    @property
    def is_regression(self) -> bool:
        return self.label_range is not None

    def estimator(self, epsilon: float, mechanism: MechanismName = "auto") -> Any:
        """Return a model as a user would ask for it: public facts and defaults, n private."""
        public: dict[str, Any] = {"row_norm": self.row_norm, "fit_intercept": self.fit_intercept}
        if self.is_regression:
            return LinearRegression(
                epsilon, DELTA, label_range=self.label_range, mechanism=mechanism, **public
            )
        return LogisticRegression(
            epsilon, DELTA, classes=self.classes, mechanism=mechanism, **public
        )

    def splits(self, repeat: int) -> Iterator[Dataset]:
        return (self.load(repeat, fold) for fold in range(self.n_folds))


def wang(name: str) -> Problem:
    return Problem(
        name=name,
        load=lambda repeat, fold: load_uci_regression(name, fold=fold, seed=repeat),
        epsilons=(*WANG_EPSILONS, ENDLESS),
        row_norm=uci_regression.ROW_NORM,
        measures=(SQUARED,),
        label_range=uci_regression.LABEL_RANGE,
        fit_intercept=False,
        n_folds=uci_regression.N_FOLDS,
    )


@lru_cache(maxsize=1)  # one at a time: KDD Cup and MNIST are large
def _loaded(load: Callable[[], Dataset]) -> Dataset:
    return load()


def table(
    name: str,
    load: Callable[[], Dataset],
    measures: tuple[str, ...] = (ZERO_ONE,),
    epsilons: tuple[float, ...] = (0.1, 1.0),
    **facts: Any,
) -> Problem:
    public = {"row_norm": 1.0, **facts}
    return Problem(
        name=name,
        load=lambda repeat, fold: _loaded(load),
        epsilons=epsilons,
        measures=measures,
        **public,
    )


# The notes of statsmodels' randhie say that coinsurance is at most 100 % and what is yes or no. The
# other limits are round numbers, set without the data.
RAND_SCHEMA = (
    Scaled("lncoins", 0.0, math.log(101.0)),
    Scaled("idp", 0.0, 1.0),
    Scaled("lpi", 0.0, math.log(5_000.0)),
    Scaled("fmde", 0.0, math.log(10_000.0)),
    Scaled("physlm", 0.0, 1.0),
    Scaled("disea", 0.0, 60.0),
    Scaled("hlthg", 0.0, 1.0),
    Scaled("hlthf", 0.0, 1.0),
    Scaled("hlthp", 0.0, 1.0),
)
RAND_VISITS = (0.0, 20.0)


def load_rand() -> Dataset:
    """Load visits to a doctor in the RAND Health Insurance Experiment, split 80 to 20."""
    import statsmodels.api

    records = statsmodels.api.datasets.randhie.load_pandas().data.to_records(index=False)
    rows = encode(np.asarray(records), RAND_SCHEMA)
    labels = np.clip(records["mdvis"].astype(float), *RAND_VISITS)
    train, test = np.split(np.random.default_rng(0).permutation(len(rows)), [len(rows) * 4 // 5])
    about = "RAND Health Insurance Experiment (public domain): outpatient visits, at most 20."
    return Dataset(
        rows[train], labels[train], rows[test], labels[test], feature_names(RAND_SCHEMA), about
    )


@dataclass(frozen=True)
class Law:
    """Rows and labels from a known law.

        x = A u / sqrt(trace),  u ~ N(0, 1)^d,  eigenvalues of A'A from 1 down to 1 / condition
        s = <w, x>,  w in a random direction, of the size that gives s this standard deviation
        y = 0.2 + s + 0.2 z clipped to [-1, 1],  or  P(y = 1) = 1 / (1 + exp(-s))

    A row has a mean square of 1; the row norm declared is ``slack`` times 1.5. With ``n_used``
    below d, only so many weights are not 0.
    """

    n: int = 5_000
    d: int = 20
    size: float = 1.0  # of the score, in the problem's unit
    condition: float = 1.0
    slack: float = 1.0
    n_used: int | None = None

    def weights_and_rows(self, generator: np.random.Generator, n: int) -> tuple[Any, Any]:
        root = np.geomspace(1.0, self.condition**-0.5, self.d)
        along = generator.standard_normal(self.d)
        if self.n_used is None:
            turn = np.linalg.qr(generator.standard_normal((self.d, self.d)))[0]
        else:
            turn = np.eye(self.d)
            along[self.n_used :] = 0.0
        # score's std = ||A w||: with w = A^-1 g every direction carries its share of the signal
        mixing = (root / np.linalg.norm(root))[:, None] * turn
        weights = np.linalg.solve(mixing, along / np.linalg.norm(along))
        return self.size * weights, generator.standard_normal((n, self.d)) @ mixing

    def draw(self, is_regression: bool) -> Dataset:
        generator = np.random.default_rng(0)
        weights, rows = self.weights_and_rows(generator, self.n + 20_000)
        scores = rows @ weights
        labels: Any
        if is_regression:
            noise = generator.standard_normal(len(rows))
            labels = np.clip(0.2 + 0.3 * scores + 0.2 * noise, -1.0, 1.0)
        else:
            labels = generator.uniform(size=len(rows)) < 1.0 / (1.0 + np.exp(-2.0 * scores))
        names = tuple(f"x{i}" for i in range(self.d))
        n = self.n
        return Dataset(rows[:n], labels[:n], rows[n:], labels[n:], names, str(self))


BASE = Law()
LAWS = {
    "base": BASE,
    "n 500": replace(BASE, n=500),
    "n 50,000": replace(BASE, n=50_000),
    "d 5": replace(BASE, d=5),
    "d 100": replace(BASE, d=100),
    "n 800, d 60": replace(BASE, n=800, d=60),
    "signal / 10": replace(BASE, size=0.1),
    "signal x 3": replace(BASE, size=3.0),
    "condition 100": replace(BASE, condition=100.0),
    "condition 10,000": replace(BASE, condition=10_000.0),
    "row norm x 3": replace(BASE, slack=3.0),
    "2 of 20 used": replace(BASE, n_used=2),
}
ROW_NORM = 1.5


def drawn(name: str, law: Law, is_regression: bool) -> Problem:
    facts: dict[str, Any] = {"row_norm": ROW_NORM * law.slack}
    if is_regression:
        facts["label_range"] = (-1.0, 1.0)
    kind, measure = ("number", SQUARED) if is_regression else ("class", ZERO_ONE)
    return table(f"{kind}: {name}", partial(law.draw, is_regression), (measure,), **facts)


@cache
def problems() -> dict[str, Problem]:
    """Return every problem by name."""
    everything = [
        *map(wang, uci_regression.NAMES),
        *(drawn(name, law, True) for name, law in LAWS.items()),
        *(drawn(name, law, False) for name, law in LAWS.items()),
        table("RAND", load_rand, (SQUARED,), row_norm=3.0, label_range=RAND_VISITS),
        table("Adult", load_adult),
        # Hardly anyone is more likely than not to be back: the majority is as good as any model
        # by 0-1 error, so the log loss is measured too.
        table(
            "Diabetes-130",
            load_diabetes130,
            (LOG_LOSS, ZERO_ONE),
            row_norm=diabetes130.ROW_NORM,
        ),
        table("KDDCup99", load_kddcup99),
        table("MNIST", load_mnist, epsilons=(1.0,), classes=tuple(range(10))),
    ]
    return {problem.name: problem for problem in everything}
