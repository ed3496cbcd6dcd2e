"""What an evaluation will release and what to expect of it, before a record is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.engine import Plan
from tacit.metrics.cells import Cells, NumberSums, SeveralClassCells, TwoClassCells
from tacit.metrics.edges import accuracy_std, auc_std, bin_edges, checked_edges, good_bins
from tacit.metrics.evaluation import TooFewRecords
from tacit.noise import Norm, Release, Source, gaussian, laplace
from tacit.privacy import Budget, Event, Gaussian, NonPrivate, PureEpsilon
from tacit.privacy.calibration import gaussian_multiplier

Array = npt.NDArray[np.float64]

# Below this many standard deviations of the noise on a whole row of bins, an area means nothing.
LEAST_SIGNAL = 10.0


@dataclass(frozen=True)
class EvaluationPlan(Plan):
    """A plan that knows what is counted.

    Examples
    --------
    >>> from tacit.metrics import evaluation_plan
    >>> from tacit.privacy import Budget
    >>> print(evaluation_plan(Budget(0.1, 1e-6), classes=("no", "yes"), n_records=16_000))
    noisy_histogram: counts by class and bin of the score, with Gaussian noise, once
      noise_std = 36.3047
      bins = 16
      accuracy_std = 0.00907617
      auc_std = 0.0145219
      least_of_each_class = 1452.19
    """

    cells: Cells = field(kw_only=True)
    noise_std: float = field(kw_only=True)

    def counted(self, answers: Array, labels: Any, source: Source | None = None) -> Release[Array]:
        """Return the noisy sums over records; call it when the plan has been charged.

        ``answers`` are the model's, one a record, as `tacit.metrics.reading.answers_of` gives them.
        """
        relation = self.budget.relation
        norm = Norm.L1 if self.budget.is_pure else Norm.L2
        total = self.cells.total(answers, labels, relation, norm)
        event: Event = self.event
        if isinstance(event, Gaussian):
            noisy = gaussian(total, event.noise_multiplier, source)
        elif isinstance(event, PureEpsilon):
            noisy = laplace(total, event.epsilon, source)
        else:
            return Release(np.asarray(total.value), event)
        return Release(np.asarray(noisy.value), noisy.event)


def evaluation_plan(
    budget: Budget,
    *,
    classes: Any = None,
    label_range: tuple[float, float] | None = None,
    bins: Any = None,
    n_records: int | None = None,
    probabilities: bool = True,
) -> EvaluationPlan:
    """Return the plan of an evaluation, from public facts alone.

    Parameters
    ----------
    budget
        What may be spent.
    classes
        The classes of a classifier, in any order; None for a regressor. What is counted has them
        sorted, as models have.
    label_range
        The least and greatest label, of a regressor.
    bins
        How many bins for each class, or their edges; by default as many as the noise allows.
    n_records
        About how many records there will be, if that is known.
    probabilities
        Whether scores are probabilities, so that they can be calibrated or not.

    Raises
    ------
    TooFewRecords
        If ``n_records`` are so few that everything would be noise; nothing was spent.
    """
    event = _event(budget)
    if classes is None:
        cells = _number_sums(label_range)
    else:
        std = _noise_std(event, _class_cells(classes, bin_edges(2), probabilities))
        cells = _class_cells(classes, _edges(bins, std, n_records), probabilities)
    plan = _planned(budget, event, cells, n_records)
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
    """Return the plan, of bins that were not chosen by hand, whose event released so many sums.

    Examples
    --------
    >>> from tacit.metrics.planning import evaluation_plan, plan_of_sums
    >>> from tacit.privacy import Budget
    >>> plan = evaluation_plan(Budget(0.1, 1e-6), classes=("no", "yes"))
    >>> again = plan_of_sums(plan.budget, plan.event, 64, classes=("no", "yes"))
    >>> again.noise_std == plan.noise_std, again.cells.n_bins == plan.cells.n_bins == 32
    (True, True)
    """
    if classes is None:
        cells, wanted = _number_sums(label_range), 5
    else:
        k = len(classes)
        matrix, each = (0, 2) if k == 2 else (k * k, 2 * k)
        n_bins = (n_sums - matrix) // each
        cells = _class_cells(classes, bin_edges(n_bins), probabilities)
        wanted = matrix + each * n_bins
    if n_sums != wanted:
        raise ValueError(f"{n_sums} sums are not what an evaluation releases.")
    return _planned(budget, event, cells, None)


def _planned(budget: Budget, event: Event, cells: Cells, n_records: int | None) -> EvaluationPlan:
    of_classes, std = not isinstance(cells, NumberSums), _noise_std(event, cells)
    return EvaluationPlan(
        "noisy_histogram" if of_classes else "noisy_sums",
        event,
        budget,
        _reason(budget, of_classes),
        _expected(cells, std, n_records),
        cells=cells,
        noise_std=std,
    )


def least_of_each_class(plan: EvaluationPlan) -> float:
    """Return how many records of each class there must be for an area to mean something."""
    return LEAST_SIGNAL * plan.noise_std * math.sqrt(plan.cells.n_bins)


def refuse_noise(plan: EvaluationPlan, n_records: float, classes: float = 1.0) -> None:
    """Refuse what would be noise: fewer records than ``classes`` times the least of each."""
    least = classes * least_of_each_class(plan)
    if n_records < least:
        raise TooFewRecords(
            f"about {max(n_records, 0.0):.0f} records are too few at this budget: the answer would "
            f"be noise. About {_round_up(least)} would do, or a larger epsilon, or fewer bins."
        )


def too_few(plan: EvaluationPlan, rarer: float) -> str | None:
    """Return why an area under a curve would be noise, if it would, and how many would do."""
    least = least_of_each_class(plan)
    if rarer >= least:
        return None
    return (
        f"Of the rarer class there are about {max(rarer, 0.0):.0f} records, and the answer would "
        f"be noise; about {_round_up(least)} would do, or a larger epsilon, or fewer bins."
    )


def _round_up(value: float) -> int:
    """Return a number of two digits that is not below."""
    unit = int(10.0 ** max(int(math.log10(max(value, 1.0))) - 1, 0))
    return math.ceil(value / unit) * unit


def _edges(bins: Any, std: float, n_records: int | None) -> Array:
    if bins is None:
        return bin_edges(good_bins(std, n_records))
    return bin_edges(bins) if np.ndim(bins) == 0 else checked_edges(bins)


def _class_cells(classes: Any, edges: Array, probabilities: bool) -> Cells:
    named = np.unique(np.asarray(classes))  # sorted, as those of models are
    if np.ndim(classes) != 1 or len(named) < 2 or len(named) < len(classes):
        raise ValueError("an evaluation needs at least two classes, each once; pass classes=[...].")
    kind = TwoClassCells if len(named) == 2 else SeveralClassCells
    return kind(named, edges, probabilities)


def _number_sums(label_range: tuple[float, float] | None) -> Cells:
    if label_range is None:
        raise ValueError(
            "label_range is not declared, and the least and greatest label are themselves "
            "records. Pass label_range=(low, high)."
        )
    low, high = (float(end) for end in label_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"label_range must be two rising numbers, got {label_range!r}.")
    return NumberSums(low, high)


def _event(budget: Budget) -> Event:
    if budget.is_infinite:
        return NonPrivate("the budget is infinite", relation=budget.relation)
    if budget.is_pure:
        return PureEpsilon(budget.epsilon, budget.relation)
    return Gaussian(gaussian_multiplier(budget), budget.relation)


def _noise_std(event: Event, cells: Cells) -> float:
    """Return the standard deviation of the noise on one sum."""
    if isinstance(event, PureEpsilon):
        # Laplace noise of scale b has standard deviation sqrt(2) b.
        return math.sqrt(2.0) * cells.l1_sensitivity(event.relation) / event.epsilon
    if isinstance(event, Gaussian):
        return event.noise_multiplier * cells.sensitivity(event.relation)
    return 0.0


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
        # A confusion matrix of K^2 cells, of which K are correct, or 2 B bins of which B are.
        correct = cells.n_classes if isinstance(cells, SeveralClassCells) else cells.n_bins
        settings["accuracy_std"] = accuracy_std(std, correct, n_records)
        if not several:
            settings["auc_std"] = auc_std(std, cells.n_bins, n_records / 4)
    settings["least_of_each_class"] = LEAST_SIGNAL * std * math.sqrt(cells.n_bins)
    return settings
