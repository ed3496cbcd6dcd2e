"""Runs of a search: each fits one candidate and scores it, whatever happens on the way."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.noise import Release, ReplayMismatch, Source, decide, gaussian, laplace, seeded_source
from tacit.noise.release import priced
from tacit.pipeline import PrivatePipeline
from tacit.pipeline.prepaid import Prepaid
from tacit.privacy import Event, Gaussian, NonPrivate
from tacit.tuning import models
from tacit.tuning.models import Unread
from tacit.tuning.planning import Tries, Try
from tacit.tuning.scores import PublicScore, balance, mistakes


def check_planned(event: Event, planned: Event) -> None:
    """Refuse a release that is not the planned one."""
    bare = event.would_be if isinstance(event, NonPrivate) and event.would_be else event
    if bare != planned:
        raise RuntimeError(
            f"a try releases {bare}, but {planned} was planned: it is withheld. This is a bug; "
            "please report it as SECURITY.md says."
        )


@dataclass(frozen=True)
class Part:
    """Rows and labels of a part of the records, and how many there are where that is public."""

    rows: Any
    labels: Any
    n_records: int | None = None


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
    """All that a run needs but its draw."""

    model: Any
    unread: Unread
    tries: Tries
    source: Source | None
    public: PublicScore | None = None

    def best(self, draws: list[Draw], train: Part, held_out: Part | None, default: Run) -> Run:
        """Return the best run; all are made, and one that fails after its charge is the worst."""
        runs = [self.run(draw, train, held_out) for draw in draws]
        won = min(
            (run for run in runs if run.model is not None), key=lambda r: r.rank, default=None
        )
        decide("the best run", None if won is None else [run is won for run in runs])
        return default if won is None else won

    def run(self, draw: Draw, train: Part, held_out: Part | None) -> Run:
        """Fit and score one candidate."""
        one = self.tries.each[draw.candidate]
        paid = one.fit if draw.seed is None else priced(one.fit, seeded_source(draw.seed))
        accountant = Prepaid(paid, one.budget, "a try")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # how many there are would tell of K, or of records
                model = self._fitted(one, accountant, draw.seed, train)
                score = self._score(model, held_out)
        except ReplayMismatch:
            raise  # an audit must hear of it
        except Exception:
            # Before the charge no record could be read (`Prepaid.fit`): the same error on all data,
            # for all to see.
            if not accountant.is_used:
                raise
            return Run(one.parameters, None, math.inf)
        return Run(one.parameters, model, score, draw.tie)

    def default(self) -> Run:
        """Return a fit of the first candidate to a row of zeros: no record has a part in it.

        It is made and scored before anything is charged, so that what would go wrong whatever the
        records are does so for all to see: a class whose fit does not charge, for one.
        """
        one, rows = self.tries.each[0], np.zeros((1, self.unread.table.n_columns))
        labels = np.array([self.unread.any_label])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = models.configured(self.model, one.parameters, one.budget)
            if isinstance(model, PrivatePipeline):
                model.set_params(evaluate=0.0)  # there is nothing that it could be tried on
            last, facts = self.unread.told(model, 1)
            event = one.fit if one.budget.is_infinite else last.plan(len(facts.names)).event
            table = models.of_part(rows, labels, facts, models.between(model))
            paid = Prepaid(event, one.budget, "a try")
            found = models.assembled(model, paid.fit(last, table))
            return Run(one.parameters, found, self._score(found, Part(rows, labels)))

    def _fitted(self, one: Try, accountant: Prepaid, seed: int | None, train: Part) -> Any:
        model = models.configured(self.model, one.parameters, one.budget, seed)
        last, facts = self.unread.told(model, train.n_records)
        table = models.of_part(train.rows, train.labels, facts, models.between(model))
        return models.assembled(model, accountant.fit(last, table))

    def _score(self, model: Any, held_out: Part | None) -> float:
        last, steps = models.asked(model), models.between(model)
        if self.public is not None:
            rows, labels = self._public_rows(model)
            return float(mistakes(last, models.through(rows, steps), labels).sum())
        if held_out is None:
            return 0.0
        rows = models.through(held_out.rows, steps)
        event = self.tries.score
        if event is None or event.reasons_void():
            return float(mistakes(last, rows, held_out.labels).sum())
        total = balance(last, rows, held_out.labels, event.relation)
        noisy: Release[Any] = (
            gaussian(total, event.noise_multiplier, self.source)
            if isinstance(event, Gaussian)
            else laplace(total, event.pure_epsilon(), self.source)
        )
        check_planned(noisy.event, event)
        return float(np.asarray(noisy.value).item())

    def _public_rows(self, model: Any) -> tuple[Any, Any]:
        public = self.public
        assert public is not None
        table = models.unread(self.model, public.X, public.y, self.tries.each[0].budget).table
        rows, labels = table.read()
        return rows, np.asarray(labels)
