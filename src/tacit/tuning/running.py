"""Runs of a search: each fits one candidate and scores it, whatever happens on the way."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.noise import ReplayMismatch, Source
from tacit.pipeline import PrivatePipeline
from tacit.queries import NoisySum, Questions, Session, Slot, plain_facts
from tacit.table_facts import EncodedTable
from tacit.tuning import models
from tacit.tuning.models import Unread
from tacit.tuning.planning import Tries, Try
from tacit.tuning.scores import MistakesOf, PublicScore, balance_of, mistakes_in


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
                model = models.configured(self.model, one.parameters, one.budget, draw.seed)
                fitted = self._fitted(model, one, train, n_records)
                score = self._score(fitted, held_out)
        except ReplayMismatch:
            raise  # an audit must hear of it
        except Exception:
            # Before the charge no record could be read (`Session.fit`): the same error on all data,
            # for all to see.
            if not train.has_asked("fit"):
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
            model = models.configured(self.model, one.parameters, one.budget)
            if isinstance(model, PrivatePipeline):
                model.set_params(evaluate=0.0)  # there is nothing that it could be tried on
            last, facts = self.unread.told(model, 1)
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
        last, facts = self.unread.told(model, n_records)
        steps = models.between(model)
        fitted = train.fit(
            "fit",
            last,
            one.budget,
            "a try",
            table=lambda part: models.of_part(part, facts, steps),
        )
        return models.assembled(model, fitted)

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
        table = models.unread(self.model, public.X, public.y, self.tries.each[0].budget).table
        rows, labels = table.read()
        return rows, np.asarray(labels)
