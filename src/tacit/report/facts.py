"""What a report may say: released and public things, and no way to hold any other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.linear_model import Summary
from tacit.metrics import Evaluation
from tacit.privacy import Guarantee
from tacit.schema import Schema


@dataclass(frozen=True)
class PublicFact:
    """Something that was known before a record was read, in words.

    Examples
    --------
    >>> from tacit.report import PublicFact
    >>> PublicFact("Largest row norm", "2", "longer rows are scaled down to it").value
    '2'
    """

    name: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class PlannedMechanism:
    """One way the noise could have been placed, as planned from public facts alone.

    Parameters
    ----------
    name
        What ``mechanism=`` calls it.
    excess_risk
        The predicted loss of accuracy, per record; None if it does not apply.
    noise
        The noise in words, or why the mechanism does not apply.
    chosen
        Whether it is the one that was run.
    settings
        Names and values of the plan's settings.

    Examples
    --------
    >>> from tacit.report import PlannedMechanism
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
    """A released number, and the standard error that the noise alone gives it, where known.

    Examples
    --------
    >>> from tacit.report import Coefficient
    >>> Coefficient("age", 1.5, error=0.2).output
    ''
    """

    name: str
    value: float
    error: float | None = None
    output: str = ""

    def __post_init__(self) -> None:
        if self.error is not None and not 0.0 <= self.error < math.inf:
            raise ValueError(
                f"error must be finite and not negative, got {self.error!r}; None leaves it out."
            )


@dataclass(frozen=True)
class Coefficients:
    """The released numbers with what is to be said about them and about their error bars.

    Examples
    --------
    >>> from tacit.report import Coefficient, Coefficients
    >>> len(Coefficients((Coefficient("age", 1.5),), "The mean.", "No error bars.").rows)
    1
    """

    rows: tuple[Coefficient, ...]
    meaning: str
    about_errors: str
    errors_are_bounds: bool = False


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
                f"epsilon must be positive and finite, got {self.epsilon!r}; put a fit without "
                "privacy in as the ceiling."
            )
        if not (math.isfinite(self.mean) and 0.0 <= self.sd < math.inf):
            raise ValueError(
                f"mean and sd must be finite and sd not negative, got {self.mean!r} and "
                f"{self.sd!r}; leave a point out that has no score."
            )


@dataclass(frozen=True)
class AccuracyPicture:
    """How good models are at several epsilon, measured on data that are public.

    Parameters
    ----------
    points
        Scores of which more is better.
    why_public
        The sentence by which somebody vouches that these scores may be shown.
    score
        What the score is called.
    floor, ceiling
        The score without a model and without privacy, if known.
    floor_name, ceiling_name
        What they are called in the chart.

    Notes
    -----
    **Assumes**. The data behind the scores are public: a score is a function of the records it
    was computed on, and nothing here protects those.

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
            raise ValueError("points is empty: there is no picture; leave accuracy None.")
        if not self.why_public.strip():
            raise ValueError(
                "why_public is empty: scores are computed from records, so somebody must say why "
                "these may be shown, such as 'The data set is published.'"
            )
        for name in ("floor", "ceiling"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} must be finite or None, got {value!r}.")


@dataclass(frozen=True)
class ReportFacts:
    """All that a report is written from.

    Parameters
    ----------
    title
        What was made, such as "Logistic regression of income".
    privacy
        The guarantee.
    schema
        What was assumed public of a raw table.
    public
        What else was assumed public.
    mechanisms
        What was run and what else could have been, in the order to be shown.
    about_mechanisms
        What the predictions assume, a sentence.
    coefficients
        The released numbers.
    summary
        The same with standard errors, if the fit released those.
    evaluation
        How well it does on records that were held out, as far as that was released.
    accuracy
        Scores on public data.
    made_by
        The program, with its version.
    made_on
        A date, if the report should carry one.

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
    summary: Summary | None = None
    evaluation: Evaluation | None = None
    accuracy: AccuracyPicture | None = None
    made_by: str = ""
    made_on: str = ""
