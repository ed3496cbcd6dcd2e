"""Define the facts of a report: released results and public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.additive.shape_plot import ShapePlot
from tacit.linear_model import Summary
from tacit.metrics import Evaluation
from tacit.privacy import Guarantee
from tacit.schema import Schema


@dataclass(frozen=True)
class PublicFact:
    """A fact known before a record was read, in words.

    Examples
    --------
    >>> from tacit.report.facts import PublicFact
    >>> PublicFact("Largest row norm", "2", "longer rows are scaled down to it").value
    '2'
    """

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class PlannedMechanism:
    """One mechanism, planned from public facts alone.

    Parameters
    ----------
    name
        The value of ``mechanism=`` that selects it.
    excess_risk
        The predicted loss of accuracy, per record; None if it does not apply.
    noise
        The noise in words, or the reason why the mechanism does not apply.
    chosen
        Whether this mechanism was run.
    settings
        Names and values of the plan's settings.

    Examples
    --------
    >>> from tacit.report.facts import PlannedMechanism
    >>> PlannedMechanism("noisy_sgd", None, "needs a public number of records").chosen
    False
    """

    name: str
    excess_risk: float | None
    noise: str
    chosen: bool = False
    settings: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Coefficient:
    """A released number and, if known, the standard error that noise alone gives it.

    Examples
    --------
    >>> from tacit.report.facts import Coefficient
    >>> Coefficient("age", 1.5, error=0.2).output
    ''
    """

    name: str
    value: float
    error: float | None = None
    output: str = ""
    is_intercept: bool = False

    def __post_init__(self) -> None:
        if self.error is not None and not 0.0 <= self.error < math.inf:
            raise ValueError(
                f"error must be finite and not negative, got {self.error!r}; pass None if unknown."
            )


@dataclass(frozen=True)
class Coefficients:
    """The released numbers, their meaning and a remark on their error bars.

    Examples
    --------
    >>> from tacit.report.facts import Coefficient, Coefficients
    >>> len(Coefficients((Coefficient("age", 1.5),), "The mean.", "No error bars.").rows)
    1
    """

    rows: tuple[Coefficient, ...]
    meaning: str
    about_errors: str
    errors_are_bounds: bool = False
    on_bias: str = ""


@dataclass(frozen=True)
class Removed:
    """A column whose curve was removed as noise.

    ``most`` is how far the line that the joint fit left of it can move the score.
    """

    name: str
    most: float = 0.0


@dataclass(frozen=True)
class Shapes:
    """The terms of an additive model, one group of pictures per column, strongest first."""

    meaning: str
    plots: tuple[tuple[ShapePlot, ...], ...]
    removed: tuple[Removed, ...] = ()
    has_label_means: bool = True


@dataclass(frozen=True)
class AccuracyPoint:
    """The mean and standard deviation of a score over repeated fits.

    Examples
    --------
    >>> from tacit.report import AccuracyPoint
    >>> AccuracyPoint("objective_perturbation", epsilon=1.0, mean=0.84, sd=0.002).mean
    0.84
    """

    mechanism: str
    epsilon: float
    mean: float
    sd: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon < math.inf:
            raise ValueError(
                f"epsilon must be positive and finite, got {self.epsilon!r}; pass the score "
                "without privacy as ceiling."
            )
        if not (math.isfinite(self.mean) and 0.0 <= self.sd < math.inf):
            raise ValueError(
                f"mean and sd must be finite and sd not negative, got {self.mean!r} and "
                f"{self.sd!r}; leave out a point without a score."
            )


@dataclass(frozen=True)
class AccuracyPicture:
    """Scores of models at several epsilon, measured on public data.

    Parameters
    ----------
    points
        Scores; higher is better.
    why_public
        A sentence by which somebody vouches that these scores may be shown.
    score
        The name of the score.
    floor, ceiling
        The score without a model and without privacy, if known.
    floor_name, ceiling_name
        Their names in the chart.

    Notes
    -----
    **Assumes**. The data behind the scores are public. Scores are computed from records without
    noise, so they have no guarantee.

    Examples
    --------
    >>> from tacit.report import AccuracyPicture, AccuracyPoint
    >>> points = (AccuracyPoint("output_perturbation", 1.0, 0.8),)
    >>> AccuracyPicture(points, "The data set is published.").score
    'accuracy'
    """

    points: tuple[AccuracyPoint, ...]
    why_public: str
    score: str = "accuracy"
    floor: float | None = None
    ceiling: float | None = None
    floor_name: str = "majority class"
    ceiling_name: str = "without privacy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(self.points))
        if not self.points:
            raise ValueError("points is empty, so there is nothing to draw; pass accuracy=None.")
        if not self.why_public.strip():
            raise ValueError(
                "why_public is empty; scores are computed from records without protection, so "
                "state why they may be shown, such as 'The data set is published.'"
            )
        for name in ("floor", "ceiling"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} must be finite or None, got {value!r}.")


@dataclass(frozen=True)
class ReportFacts:
    """All facts that a report shows.

    Parameters
    ----------
    title
        The title, such as "Logistic regression of income".
    privacy
        The guarantee.
    schema
        The public schema of the raw table.
    public
        Other facts that were assumed public.
    mechanisms
        The mechanism that was run and its alternatives, in the order shown.
    about_mechanisms
        A sentence on the assumptions of the predictions.
    coefficients
        The released numbers.
    shapes
        The terms of an additive model.
    summary
        The coefficients with standard errors, if the fit released them.
    evaluation
        The private evaluation on held-out records, if one was released.
    accuracy
        Scores on public data.
    made_by
        The program, with its version.
    made_on
        A date to print, if any.

    Examples
    --------
    >>> from tacit.privacy import Gaussian, Guarantee
    >>> from tacit.report import ReportFacts
    >>> ReportFacts("A count", Guarantee(Gaussian(2.0), 1e-6)).privacy.voided_by
    ()
    """

    title: str
    privacy: Guarantee
    schema: Schema | None = None
    public: tuple[PublicFact, ...] = ()
    mechanisms: tuple[PlannedMechanism, ...] = ()
    about_mechanisms: str = ""
    coefficients: Coefficients | None = None
    shapes: Shapes | None = None
    summary: Summary | None = None
    evaluation: Evaluation | None = None
    accuracy: AccuracyPicture | None = None
    made_by: str = ""
    made_on: str = ""
