"""Trials of a search: each fits one candidate and scores it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from tacit import checks
from tacit.noise import ReplayMismatch, Source
from tacit.pipeline import PrivatePipeline
from tacit.queries import (
    Facts,
    MistakeBalance,
    NoisySum,
    Private,
    Questions,
    Session,
    Slot,
    plain_facts,
)
from tacit.records import as_labels, as_numbers
from tacit.records.rows_and_labels import codes_of
from tacit.table_facts import EncodedTable
from tacit.tuning import introspection
from tacit.tuning.introspection import Unread
from tacit.tuning.planning import Tries, Try

Array = npt.NDArray[np.float64]

# A residual beyond this share of the label range is as bad as any.
_RESIDUAL_SHARE = 0.25


class Score(Protocol):
    """Where a score comes from: records held out, or public ones."""

    @property
    def share(self) -> float:
        """The share of the private records that it takes; 0 for none."""


@dataclass(frozen=True)
class HeldOut:
    """Mistakes on a part of the private records, on which nothing is fitted.

    For numbers a mistake is min((residual / a quarter of the label range)^2, 1). Their sum gets
    noise; the parts are disjoint, so that fit and score together cost the larger of the two.

    Examples
    --------
    >>> from tacit.tuning.trials import HeldOut
    >>> HeldOut(0.2).share
    0.2
    """

    share: float = 0.2
    assumptions: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not 0.0 < checks.real("share", self.share) < 1.0:
            raise ValueError(f"share must be between 0 and 1, got {self.share!r}.")


@dataclass(frozen=True, eq=False)
class PublicScore:
    """Mistakes on records that need no protection: they cost nothing, and all others train.

    The guarantee repeats that they need none.

    Parameters
    ----------
    X, y
        Records as `fit` takes them, and their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.tuning.trials import PublicScore
    >>> PublicScore(np.ones((3, 2)), [0, 1, 1]).share
    0.0
    """

    X: Any
    y: Any
    share = 0.0
    assumptions = (
        "the records on which candidates were compared need no protection, and are none of those "
        "that it is about",
    )


def mistakes(model: Any, rows: Any, labels: Any) -> Array:
    """Return how wrong a fitted estimator is about each record that counts, from 0 to 1."""
    if not rows.shape[0]:  # which no estimator takes: an error would tell that there is none
        return np.zeros(0)
    said = model.predict(rows)
    if is_classifier(model):
        codes, known = codes_of(as_labels(labels), model.classes_)
        wrong: Array = (model.classes_[codes] != said)[known].astype(np.float64)
        return wrong
    low, high = model.label_range
    truth = np.clip(np.nan_to_num(as_numbers(labels), nan=low), low, high)
    residual = (truth - np.clip(said, low, high)) / (_RESIDUAL_SHARE * (high - low))
    # where a record overflows, NaN is said: one mistake too, or it would spoil the sum of all
    result: Array = np.where(np.abs(residual) < 1.0, residual**2, 1.0)
    return result


def mistakes_in(model: Any, rows: Any, labels: Any) -> Array:
    """Return the mistakes of a whole model, with its steps, about rows as they are encoded."""
    return mistakes(
        introspection.final_estimator(model),
        introspection.through(rows, introspection.between(model)),
        labels,
    )


def balance_of(model: Any) -> MistakeBalance:
    """Return what is asked for about a model's mistakes."""
    return MistakeBalance(whole=is_classifier(introspection.final_estimator(model)))


@dataclass(frozen=True, eq=False)
class MistakesOf:
    """A view: the mistakes of a model that is released, or will be, in the place of the records."""

    model: Any

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return one number a record that counts."""
        return mistakes_in(self.model, *records.read()), facts


@dataclass(frozen=True, eq=False)
class MistakesOfEach:
    """A view: the mistakes of each of several models, in the place of the records."""

    models: Sequence[Any]

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return an array for each model; a failed one, or one that cannot say, is always wrong."""
        rows, labels = records.read()
        return [self._mistakes(model, rows, labels) for model in self.models], facts

    def _mistakes(self, model: Any, rows: Any, labels: Any) -> Array:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # one that is an error would be about every record
                return mistakes_in(model, rows, labels)
        except Exception:
            return np.ones(rows.shape[0])


@dataclass(frozen=True)
class Draw:
    """What is random about a run apart from noise, drawn before any record is read."""

    candidate: int
    tie: int
    seed: int | None


@dataclass(frozen=True)
class Run:
    """A fitted model with its score, the lower the better; a failed run has none."""

    parameters: Mapping[str, Any] | None
    model: Any
    score: float
    tie: int = 0

    @property
    def rank(self) -> tuple[float, int]:
        """By score, and where scores are alike by what was drawn beforehand."""
        return self.score, self.tie


@dataclass(frozen=True)
class Runner:
    """All that a run needs but its draw and its records."""

    model: Any
    unread: Unread
    tries: Tries
    source: Source | None
    public: PublicScore | None = None

    def best(self, session: Session, draws: list[Draw], n_records: int | None, default: Run) -> Run:
        """Return the best run; all are made, and one that fails after its charge is the worst.

        ``n_records`` is how many records a run is fitted to, where that is public.
        """
        runs = [self._tried(session, draw, n_records) for draw in draws]
        won = min(
            (run for run in runs if run.model is not None), key=lambda r: r.rank, default=None
        )
        session.decide("the best run", None if won is None else [run is won for run in runs])
        return default if won is None else won

    def _tried(self, session: Session, draw: Draw, n_records: int | None) -> Run:
        """Make one run, which is a child of the search; of its parts if records are held out."""
        one, score = self.tries.each[draw.candidate], self.tries.score
        if score is None:
            attempt = session.child("best", one.questions)
            run = self.run(draw, attempt, None, n_records)
        else:
            plan = one.scored(score)
            attempt = session.child("best", plan)
            train, held_out = attempt.parts("parts", plan)
            run = self.run(draw, train, held_out, n_records)
            train.close()
            held_out.close()
        attempt.close()
        return run

    def run(
        self, draw: Draw, train: Session, held_out: Session | None, n_records: int | None
    ) -> Run:
        """Fit one candidate to a session's records, and score it on those of another."""
        one = self.tries.each[draw.candidate]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # how many there are would tell of K, or of records
                model = introspection.configured(self.model, one.parameters, one.budget, draw.seed)
                fitted = self._fitted(model, one, train, n_records)
                score = self._score(fitted, held_out)
        except ReplayMismatch:
            raise  # an audit must hear of it
        except Exception:
            # Before the charge no record could be read (`Session.fit`): the same error on all data,
            # for all to see.
            if not train.has_used("fit"):
                raise
            return Run(one.parameters, None, math.inf)
        return Run(one.parameters, fitted, score, draw.tie)

    def default(self) -> Run:
        """Return a fit of the first candidate to a row of zeros: no record has a part in it.

        It is made and scored before anything is charged, so that what would go wrong whatever the
        records are does so for all to see: a class whose fit does not charge, for one.
        """
        one = self.tries.each[0]
        nobody = np.zeros((1, self.unread.table.n_columns)), np.array([self.unread.any_label])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = introspection.configured(self.model, one.parameters, one.budget)
            if isinstance(model, PrivatePipeline):
                model.set_params(evaluate=0.0)  # there is nothing that it could be tried on
            last, facts = self.unread.resolved(model, 1)
            event = one.fit if one.budget.is_infinite else last.plan(len(facts.names)).event
            table, of_rows = EncodedTable(facts, lambda: nobody), plain_facts(event.relation)
            fit = Questions(of_rows, {"fit": Slot(event)})
            session = Session(table, of_rows, fit.event, fit.slots())
            found = self._fitted(model, one, session, 1)
            if self.public is not None or self.tries.noise is None:
                return Run(one.parameters, found, self._score(found, None, nobody))
            score = Questions(of_rows, {"score": Slot(self.tries.noise.event(of_rows))})
            scored = Session(table, of_rows, score.event, score.slots(), self.source)
            return Run(one.parameters, found, self._score(found, scored))

    def _fitted(self, model: Any, one: Try, train: Session, n_records: int | None) -> Any:
        last, facts = self.unread.resolved(model, n_records)
        steps = introspection.between(model)
        fitted = train.fit(
            "fit",
            last,
            one.budget,
            "a try",
            table=lambda part: introspection.of_part(part, facts, steps),
        )
        return introspection.assembled(model, fitted)

    def _score(self, model: Any, held_out: Session | None, public: Any = None) -> float:
        """Return a score on records held out, or on public ones; 0 where there are neither."""
        if self.public is not None:
            public = self._public_rows()
        if public is not None:
            return float(mistakes_in(model, *public).sum())
        if held_out is None:
            return 0.0
        about = held_out.on(MistakesOf(model))
        if self.tries.noise is None:
            return about.without_noise(lambda wrong: float(wrong.sum()))
        query = NoisySum(balance_of(model), self.tries.noise)
        return float(np.asarray(about.ask(query, "score")).item())

    def _public_rows(self) -> tuple[Any, Any]:
        public = self.public
        assert public is not None
        table = introspection.unread(
            self.model, public.X, public.y, self.tries.each[0].budget
        ).table
        rows, labels = table.read()
        return rows, np.asarray(labels)
