"""Plan an evaluation: bins, noise, event and expected errors, before a record is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.engine import Plan, without_noise
from tacit.metrics.evaluation import TooFewRecords
from tacit.noise import Norm
from tacit.privacy import Budget, Event, Gaussian, PureEpsilon
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import Facts, GaussianNoise, LaplaceNoise, NoisySum, Session
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import Cells, NumberSums, SeveralClassCells, TwoClassCells

Array = npt.NDArray[np.float64]

CHOICES = (16, 32, 64)
MOST_BINS, USUAL_BINS = 64, 32
# Error of the area under a curve due to B bins of crowded scores: BIN_ERROR / B^2 (measured on
# Diabetes-130, where nine scores in ten lie between 0.05 and 0.24).
BIN_ERROR = 1.0


def bin_edges(n_bins: int) -> Array:
    """Return the edges of ``n_bins`` bins from 0 to 1, narrower near both ends.

    Edges are at equal steps of asin(sqrt(p)), which stabilises the variance of a share p of a
    sample: a rare class, whose scores are all near 0, is resolved as finely as a
    frequent one. One half is always an edge, so that the decisions of a classifier at one half
    follow exactly from the bins.

    Examples
    --------
    >>> from tacit.metrics.planning import bin_edges
    >>> bin_edges(4).round(3), bin_edges(3).round(3)
    (array([0.   , 0.146, 0.5  , 0.854, 1.   ]), array([0.  , 0.25, 0.5 , 1.  ]))
    """
    n_bins = checks.count("bins", n_bins, least=2, most=4096, remedy="64 do for any table.")
    edges: Array = np.sin(np.linspace(0.0, math.pi / 2, n_bins + 1)) ** 2
    edges[1 + int(np.argmin(np.abs(edges[1:-1] - 0.5)))] = 0.5
    return edges


def checked_edges(edges: Any) -> Array:
    """Check edges given by the user; they rise from 0 to 1 and include one half."""
    given = np.asarray(edges, dtype=np.float64)
    rising = given.ndim == 1 and len(given) > 2 and bool(np.all(np.diff(given) > 0))
    if not rising or given[0] != 0.0 or given[-1] != 1.0 or 0.5 not in given:
        raise ValueError(
            "bins must be a number, or edges that rise from 0 to 1 with 0.5 among them."
        )
    return given


def good_bins(noise_std: float, n_records: int | None) -> int:
    """Return the number of bins with the least error: noise favours few, resolution many.

    The area under the ROC curve has noise of about 0.4 noise_std sqrt(B) / min(P, N), and an
    error of about 1 / B^2 from B bins. The rarer class is assumed to be a quarter of the records;
    if their number is unknown, the result is 32.

    Examples
    --------
    >>> from tacit.metrics.planning import good_bins
    >>> good_bins(36.3, 16_000), good_bins(4.22, 16_000), good_bins(0.0, 100)
    (16, 32, 64)
    """
    if noise_std == 0.0:
        return MOST_BINS
    if n_records is None:
        return USUAL_BINS

    def error(n_bins: int) -> float:
        return math.hypot(auc_std(noise_std, n_bins, n_records / 4), BIN_ERROR / n_bins**2)

    return min(CHOICES, key=error)


def auc_std(noise_std: float, n_bins: int, rarer: float) -> float:
    """Return the approximate standard deviation of the noise on the area under the ROC curve."""
    return 0.4 * noise_std * math.sqrt(n_bins) / max(rarer, 1.0)


def accuracy_std(noise_std: float, n_bins: int, n_records: float, accuracy: float = 1.0) -> float:
    """Return the noise on an accuracy a: sigma sqrt(B (a^2 + (1 - a)^2)) / n.

    B cells of correct answers and B of wrong ones: accuracy = C / (C + W) has derivatives
    (1 - a) / n and -a / n.
    """
    a = accuracy
    return noise_std * math.sqrt(n_bins * (a * a + (1 - a) ** 2)) / max(n_records, 1.0)


EvaluationNoise = GaussianNoise | LaplaceNoise

# Least ratio of a class count to the noise on a row of bins for which an area is computed.
LEAST_SIGNAL = 10.0


@dataclass(frozen=True)
class EvaluationPlan(Plan):
    """A plan with the cells to count.

    Examples
    --------
    >>> from tacit.metrics.planning import evaluation_plan
    >>> from tacit.privacy import Budget
    >>> print(evaluation_plan(Budget(0.1, 1e-6), classes=("no", "yes"), n_records=16_000))
    noisy_histogram: counts by class and bin of the score, with Gaussian noise, once
      noise_std = 36.3047
      bins = 16
      accuracy_std = 0.00907617
      auc_std = 0.0145219
      least_of_each_class = 1452.19
    """

    facts: Facts = field(kw_only=True)
    cells: Cells = field(kw_only=True)
    # Whether scores are probabilities, so that calibration is defined.
    probabilities: bool = field(kw_only=True)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a sum."""
        return _noise_std(self.queries.get("sums"), self.budget)

    def sums(self, session: Session) -> Array:
        """Ask a session of a model's answers for the noisy sums."""
        if "sums" in self.queries:
            return np.asarray(session.ask(self.queries["sums"], "sums"))
        return session.without_noise(lambda answered: self.cells.total(answered, session.facts))


def evaluation_plan(
    budget: Budget,
    *,
    classes: Any = None,
    label_range: tuple[float, float] | None = None,
    bins: Any = None,
    n_records: int | None = None,
    probabilities: bool = True,
) -> EvaluationPlan:
    """Plan an evaluation from public facts alone.

    Parameters
    ----------
    budget
        The budget of the evaluation.
    classes
        The classes of a classifier, in any order; None for a regressor. The cells use sorted
        classes, as models do.
    label_range
        The least and greatest label, for a regressor.
    bins
        The number of bins per class, or their edges; by default as many as the noise allows.
    n_records
        The approximate number of records, if known.
    probabilities
        Whether scores are probabilities, so that calibration is defined.

    Raises
    ------
    TooFewRecords
        If ``n_records`` is so small that every metric would be mostly noise; nothing was spent.
    """
    noise = _noise(budget)
    if classes is None:
        cells = _number_sums(label_range, noise)
    else:
        few = _class_cells(classes, bin_edges(2), noise)
        std = _noise_std(NoisySum(few, noise) if noise else None, budget)
        cells = _class_cells(classes, _edges(bins, std, n_records), noise)
    plan = _planned(budget, noise, cells, n_records, probabilities)
    if n_records is not None:
        refuse_noise(plan, float(n_records), 2.0 if classes is not None else 1.0)
    return plan


def plan_of_sums(
    budget: Budget,
    event: Event,
    n_sums: int,
    *,
    classes: Any = None,
    label_range: tuple[float, float] | None = None,
    probabilities: bool = True,
) -> EvaluationPlan:
    """Return the plan, with default bins, of an event that released this many sums.

    Examples
    --------
    >>> from tacit.metrics import evaluation_plan
    >>> from tacit.metrics.planning import plan_of_sums
    >>> from tacit.privacy import Budget
    >>> plan = evaluation_plan(Budget(0.1, 1e-6), classes=("no", "yes"))
    >>> again = plan_of_sums(plan.budget, plan.event, 64, classes=("no", "yes"))
    >>> again.noise_std == plan.noise_std, again.cells.n_bins == plan.cells.n_bins == 32
    (True, True)
    """
    noise = _noise_of(event)
    if classes is None:
        cells, wanted = _number_sums(label_range, noise), 5
    else:
        k = len(classes)
        matrix, each = (0, 2) if k == 2 else (k * k, 2 * k)
        n_bins = (n_sums - matrix) // each
        cells = _class_cells(classes, bin_edges(n_bins), noise)
        wanted = matrix + each * n_bins
    if n_sums != wanted:
        raise ValueError(f"{n_sums} sums are not what an evaluation releases.")
    return _planned(budget, noise, cells, None, probabilities)


def _planned(
    budget: Budget,
    noise: EvaluationNoise | None,
    cells: Cells,
    n_records: int | None,
    probabilities: bool,
) -> EvaluationPlan:
    of_classes, facts = not isinstance(cells, NumberSums), plain_facts(budget.relation)
    query = NoisySum(cells, noise) if noise else None
    return EvaluationPlan(
        "noisy_histogram" if of_classes else "noisy_sums",
        without_noise(budget).event if query is None else query.event(facts),
        budget,
        _reason(budget, of_classes),
        _expected(cells, _noise_std(query, budget), n_records),
        facts=facts,
        queries={} if query is None else {"sums": query},
        cells=cells,
        probabilities=probabilities,
    )


def least_of_each_class(plan: EvaluationPlan) -> float:
    """Return the least number of records of each class for a meaningful area."""
    return LEAST_SIGNAL * plan.noise_std * math.sqrt(plan.cells.n_bins)


def refuse_noise(plan: EvaluationPlan, n_records: float, classes: float = 1.0) -> None:
    """Refuse fewer records than ``classes`` times the least of each class."""
    least = classes * least_of_each_class(plan)
    if n_records < least:
        raise TooFewRecords(
            f"about {max(n_records, 0.0):.0f} records are too few at this budget: the result would "
            f"be noise. Use about {_round_up(least)} records, a larger epsilon, or fewer bins."
        )


def too_few(plan: EvaluationPlan, rarer: float) -> str | None:
    """Return why an area under a curve would be mostly noise, or None."""
    least = least_of_each_class(plan)
    if rarer >= least:
        return None
    return (
        f"The rarer class has about {max(rarer, 0.0):.0f} records, and the result would "
        f"be noise; use about {_round_up(least)} records, a larger epsilon, or fewer bins."
    )


def _round_up(value: float) -> int:
    """Round up to two digits."""
    unit = int(10.0 ** max(int(math.log10(max(value, 1.0))) - 1, 0))
    return math.ceil(value / unit) * unit


def _edges(bins: Any, std: float, n_records: int | None) -> Array:
    if bins is None:
        return bin_edges(good_bins(std, n_records))
    return bin_edges(bins) if np.ndim(bins) == 0 else checked_edges(bins)


def _class_cells(classes: Any, edges: Array, noise: EvaluationNoise | None) -> Cells:
    named = np.unique(np.asarray(classes))  # sorted, as in models
    if np.ndim(classes) != 1 or len(named) < 2 or len(named) < len(classes):
        raise ValueError("an evaluation needs at least two classes, each once; pass classes=[...].")
    kind = TwoClassCells if len(named) == 2 else SeveralClassCells
    return kind(named, edges, _norm(noise))


def _number_sums(label_range: tuple[float, float] | None, noise: EvaluationNoise | None) -> Cells:
    if label_range is None:
        raise ValueError(
            "label_range is not declared, and the least and greatest label would reveal "
            "records. Pass label_range=(low, high)."
        )
    low, high = (float(end) for end in label_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"label_range must be two rising numbers, got {label_range!r}.")
    return NumberSums(low, high, _norm(noise))


def _noise(budget: Budget) -> EvaluationNoise | None:
    if budget.is_infinite:
        return None
    if budget.is_pure:
        return LaplaceNoise(budget.epsilon)
    return GaussianNoise(gaussian_multiplier(budget))


def _noise_of(event: Event) -> EvaluationNoise | None:
    """Return the noise of an event that an evaluation released."""
    if isinstance(event, PureEpsilon):
        return LaplaceNoise(event.epsilon)
    return GaussianNoise(event.noise_multiplier) if isinstance(event, Gaussian) else None


def _norm(noise: EvaluationNoise | None) -> Norm:
    return Norm.L1 if isinstance(noise, LaplaceNoise) else Norm.L2


def _noise_std(query: NoisySum | None, budget: Budget) -> float:
    """Return the standard deviation of the noise on one sum."""
    return 0.0 if query is None else query.noise_std(plain_facts(budget.relation))


def _reason(budget: Budget, classes: bool) -> str:
    what = "counts by class and bin of the score" if classes else "sums of residuals and labels"
    if budget.is_infinite:
        return f"{what}, without noise: the budget is infinite"
    return f"{what}, with {'Laplace' if budget.is_pure else 'Gaussian'} noise, once"


def _expected(cells: Cells, std: float, n_records: int | None) -> dict[str, float]:
    settings: dict[str, float] = {"noise_std": std}
    if isinstance(cells, NumberSums):
        if n_records is not None:
            settings["mse_std"] = std * cells.width**2 / n_records
        return settings
    settings["bins"] = cells.n_bins
    if n_records is not None:
        several = isinstance(cells, SeveralClassCells)
        # A confusion matrix has K^2 cells, K of them correct; 2 B bins have B correct cells.
        correct = cells.n_classes if isinstance(cells, SeveralClassCells) else cells.n_bins
        settings["accuracy_std"] = accuracy_std(std, correct, n_records)
        if not several:
            settings["auc_std"] = auc_std(std, cells.n_bins, n_records / 4)
    settings["least_of_each_class"] = LEAST_SIGNAL * std * math.sqrt(cells.n_bins)
    return settings
