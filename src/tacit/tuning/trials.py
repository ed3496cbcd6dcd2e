"""Run trials of a search: each fits one candidate and scores it."""

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
from tacit.queries import Facts, NoisySum, Private, Session, Slot
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import MistakeBalance
from tacit.queries.session import Questions
from tacit.records.rows_and_labels import as_labels, as_numbers, codes_of
from tacit.table_facts import EncodedTable
from tacit.tuning.planning import Tries, Try
from tacit.tuning.records import Unread, configured, unread

Array = npt.NDArray[np.float64]

# A residual beyond this share of the label range counts as one full mistake.
_RESIDUAL_SHARE = 0.25


class Score(Protocol):
    """The source of a score: held-out records, or public ones."""

    @property
    def share(self) -> float:
        """The share of the private records that it uses; 0 for none."""


@dataclass(frozen=True)
class HeldOut:
    """Mistakes on held-out private records, on which nothing is fitted.

    For numbers a mistake is min((residual / a quarter of the label range)^2, 1). Their sum gets
    noise; the parts are disjoint, so fit and score together cost the larger of the two.

    Examples
    --------
    >>> from tacit.tuning import HeldOut
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
    """Mistakes on public records: they cost nothing, and all private records are for training.

    The guarantee repeats the assumption that they need no protection.

    Parameters
    ----------
    X, y
        Records as `fit` takes them, and their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.tuning import PublicScore
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
    """Return the mistake of a fitted model on each valid encoded record, from 0 to 1."""
    model = getattr(model, "row_model", model)
    if not rows.shape[0]:  # estimators reject empty input, and the error would reveal it
        return np.zeros(0)
    said = model.predict(rows)
    if is_classifier(model):
        codes, known = codes_of(as_labels(labels), model.classes_)
        wrong: Array = (model.classes_[codes] != said)[known].astype(np.float64)
        return wrong
    last = model[-1] if hasattr(model, "steps") else model
    low, high = getattr(last, "label_range_", None) or last.label_range
    truth = np.clip(np.nan_to_num(as_numbers(labels), nan=low), low, high)
    residual = (truth - np.clip(said, low, high)) / (_RESIDUAL_SHARE * (high - low))
    # An overflow gives NaN, which counts as one mistake; otherwise it would spoil the sum.
    result: Array = np.where(np.abs(residual) < 1.0, residual**2, 1.0)
    return result


@dataclass(frozen=True, eq=False)
class MistakesOf:
    """A view of the records: the mistakes of a model that is, or will be, released."""

    model: PrivatePipeline

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return one number per valid record."""
        return mistakes(self.model, *records.read()), facts


@dataclass(frozen=True, eq=False)
class MistakesOfEach:
    """A view of the records: the mistakes of each of several models."""

    models: Sequence[PrivatePipeline | None]

    def apply(self, records: Private, facts: Facts, source: Source) -> tuple[Private, Facts]:
        """Return an array per model; a failed model is always wrong."""
        rows, labels = records.read()
        return [self._mistakes(model, rows, labels) for model in self.models], facts

    def _mistakes(self, model: Any, rows: Any, labels: Any) -> Array:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an error instead would fail all records
                return mistakes(model, rows, labels)
        except Exception:
            return np.ones(rows.shape[0])


@dataclass(frozen=True)
class Draw:
    """The random choices of a run except noise, drawn before any record is read."""

    candidate: int
    tie: int
    seed: int | None


@dataclass(frozen=True)
class Run:
    """A fitted model with its score, lower is better; a failed run has none."""

    parameters: Mapping[str, Any] | None
    model: Any
    score: float
    tie: int = 0

    @property
    def rank(self) -> tuple[float, int]:
        """Order by score; ties are broken by a number drawn in advance."""
        return self.score, self.tie


@dataclass(frozen=True)
class Runner:
    """All inputs of a run except its draw and its records."""

    model: Any
    unread: Unread
    tries: Tries
    source: Source | None
    public: PublicScore | None = None

    def best(self, session: Session, draws: list[Draw], n_records: int | None, default: Run) -> Run:
        """Make all runs and return the best; one that fails after its charge is the worst.

        ``n_records`` is the number of training records of a run, if public.
        """
        runs = [self._tried(session, draw, n_records) for draw in draws]
        won = min(
            (run for run in runs if run.model is not None), key=lambda r: r.rank, default=None
        )
        session.decide("the best run", None if won is None else [run is won for run in runs])
        return default if won is None else won

    def _tried(self, session: Session, draw: Draw, n_records: int | None) -> Run:
        """Make one run as a child of the search, on parts if records are held out."""
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
        """Fit one candidate to a session's records, and score it on another session."""
        one = self.tries.each[draw.candidate]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # their number would reveal K, or records
                model = configured(self.model, one.parameters, one.budget, draw.seed)
                fitted = self._fitted(model, one, train, n_records)
                score = self._score(fitted, held_out)
        except ReplayMismatch:
            raise  # an audit must see it
        except Exception:
            # Before the charge no record could be read (`Session.fit`), so the error is the same
            # for all data and may be shown.
            if not train.has_used("fit"):
                raise
            return Run(one.parameters, None, math.inf)
        return Run(one.parameters, fitted, score, draw.tie)

    def default(self) -> Run:
        """Fit the first candidate to a row of zeros, without any record.

        The fit is made and scored before anything is charged, so that errors that do not depend on
        the records are shown, such as a class whose fit does not charge.
        """
        one = self.tries.each[0]
        facts = self.unread.of_part(1)
        nobody = np.zeros((1, len(facts.names))), np.array([self.unread.any_label])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = configured(self.model, one.parameters, one.budget)
            model.evaluate = 0.0  # there are no records to hold out
            plan = None if one.budget.is_infinite else model.plan_of(facts, weighted=False)
            event = one.fit if plan is None else plan.event
            table, of_rows = EncodedTable(facts, lambda: nobody), plain_facts(event.relation)
            fit = Questions(of_rows, {"fit": Slot(event)})
            session = Session(table, of_rows, fit.event, fit.slots())
            found = self._fitted(model, one, session, 1)
            if self.public is not None or self.tries.noise is None:
                return Run(one.parameters, found, self._score(found, None, nobody))
            score = Questions(of_rows, {"score": Slot(self.tries.noise.event(of_rows))})
            scored = Session(table, of_rows, score.event, score.slots(), self.source)
            return Run(one.parameters, found, self._score(found, scored))

    def _fitted(
        self, model: PrivatePipeline, one: Try, train: Session, n_records: int | None
    ) -> PrivatePipeline:
        to_fit, facts, before = model.to_fit(self.unread.of_part(n_records))

        def table(part: EncodedTable) -> EncodedTable:
            # Read after the trial is charged, so that a step cannot fail on a record before.
            for step in before.values():
                part = part.through(step)
            return EncodedTable(facts, part.read)

        fitted = train.fit("fit", to_fit, one.budget, "a try", table=table)
        return model.assemble(fitted, before, facts)

    def _score(self, model: PrivatePipeline, held_out: Session | None, public: Any = None) -> float:
        """Return a score on held-out or public records; 0 without either."""
        if self.public is not None:
            public = self._public_rows()
        if public is not None:
            return float(mistakes(model, *public).sum())
        if held_out is None:
            return 0.0
        about = held_out.on(MistakesOf(model))
        if self.tries.noise is None:
            return about.without_noise(lambda wrong: float(wrong.sum()))
        query = NoisySum(MistakeBalance(whole=is_classifier(model)), self.tries.noise)
        return float(np.asarray(about.ask(query, "score")).item())

    def _public_rows(self) -> tuple[Any, Any]:
        public = self.public
        assert public is not None
        table = unread(self.model, public.X, public.y, self.tries.each[0].budget).table
        assert table is not None
        rows, labels = table.read()
        return rows, np.asarray(labels)
