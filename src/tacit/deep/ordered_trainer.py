"""Train on records in a fixed order, without random batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import nn

from tacit import checks
from tacit.deep.callbacks import Callback, Moment, checked_callbacks, try_evaluations
from tacit.deep.clipping import Clip, FlatClip
from tacit.deep.clipping.clip import AdaptiveClip
from tacit.deep.clipping.mixing_check import book_keeper
from tacit.deep.clipping.model_state import in_mode
from tacit.deep.optimizer_step import Descent, Schedule, constant
from tacit.deep.planning import facts_of
from tacit.deep.records import Batches, records_of
from tacit.deep.trainer import TRAINED_ALREADY, Loss, check_kinds, check_source
from tacit.engine import Plan, release_answers
from tacit.noise import Source, secure_source
from tacit.privacy import AnyAccountant, Budget, Guarantee
from tacit.privacy.accountant import planning_budget
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries import Session
from tacit.queries.clipped_sum import (
    CorrelatedNoise,
    CorrelatedStep,
    OrderedRun,
    OrderedSum,
    TreeNoise,
)


class OrderedTrainer:
    """Train a model on batches in the records' own order, with correlated noise.

    For records that cannot be sampled: a stream, or a table too large for random access.
    There is no privacy amplification by sampling; the noise is `TreeNoise` or `BandedNoise`,
    which cancels in the sum of all gradients so far. If records can be sampled, `PrivateTrainer`
    learns more for the same budget.

    Parameters
    ----------
    model, loss, optimizer, clip, schedule, callbacks, accountant, source
        As in `PrivateTrainer`; the clip is fixed.
    budget
        The budget; relation REPLACE: the number of records and the positions of
        the records of each batch are public.
    n_records
        The number of records.
    batch_size
        The number of consecutive records in a batch.
    epochs
        The number of passes over all records, in the same order.
    noise
        `TreeNoise` or `BandedNoise`.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from torch import nn
    >>> from tacit import Budget, Relation
    >>> from tacit.deep import BandedNoise, OrderedTrainer
    >>> X = np.random.default_rng(0).standard_normal((2000, 3)).astype("float32")
    >>> model = nn.Linear(3, 2)
    >>> trainer = OrderedTrainer(
    ...     model,
    ...     nn.CrossEntropyLoss(reduction="none"),
    ...     torch.optim.SGD(model.parameters(), lr=0.1),
    ...     Budget(3.0, 1e-5, Relation.REPLACE),
    ...     n_records=2000,
    ...     batch_size=100,
    ...     noise=BandedNoise(4),
    ... ).fit(X, (X[:, 0] > 0).astype("int64"))
    >>> trainer.privacy_.epsilon(1e-5) <= 3.0
    True
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        optimizer: torch.optim.Optimizer,
        budget: Budget,
        *,
        n_records: int,
        batch_size: int = 256,
        epochs: int = 1,
        noise: CorrelatedNoise | None = None,
        clip: Clip | None = None,
        schedule: Schedule = constant,
        callbacks: Sequence[Callback] = (),
        accountant: AnyAccountant | None = None,
        source: Source | None = None,
    ) -> None:
        check_kinds(model, optimizer, budget, clip)
        check_source(source)
        if noise is not None and not hasattr(noise, "spread"):
            raise TypeError(
                f"noise must be a CorrelatedNoise, got {noise!r}; pass tacit.deep.TreeNoise() or "
                "BandedNoise(n)."
            )
        if isinstance(clip, AdaptiveClip):
            raise TypeError(
                "an AdaptiveClip changes between steps that share noise; pass a fixed clip."
            )
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.budget = planning_budget(budget, accountant)
        self.n_records = checks.count("n_records", n_records)
        self.batch_size = checks.count("batch_size", batch_size)
        self.epochs = checks.count("epochs", epochs)
        self.noise: CorrelatedNoise = TreeNoise() if noise is None else noise
        self.clip: Clip = FlatClip() if clip is None else clip
        self.schedule, self.callbacks = schedule, checked_callbacks(callbacks)
        self.accountant, self.source = accountant, source
        self._has_begun = False

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in a pass."""
        return self._sum.steps_per_epoch

    @property
    def _sum(self) -> OrderedSum:
        return OrderedSum(self.clip, self.noise, self.n_records, self.batch_size, self.epochs)

    def plan(self) -> Plan:
        """Plan a fit and its cost, without data."""
        summed, facts = self._sum, facts_of(self.budget)
        summed.sensitivity(facts)  # raises for other relations
        if self.budget.is_pure or self.budget.is_infinite:
            raise ValueError("the noise is Gaussian: pass a finite epsilon and a delta above 0.")
        z = least_noise(lambda z: CorrelatedStep(summed, z).event(facts), self.budget)
        steps = summed.steps_per_epoch
        settings = {
            "n_steps": steps * self.epochs,
            "steps_per_epoch": steps,
            "batch_size": self.batch_size,
            "clip": self.clip.max_grad_norm,
            "noise_multiplier": z,
            "spread": summed.spread,
        }
        reason = f"{type(self.noise).__name__} on batches in the records' own order"
        slot = CorrelatedStep(summed, z).slot(facts)
        paid = {"steps": slot}
        return Plan(
            "correlated_noise", slot.event, self.budget, reason, settings, facts=facts, paid=paid
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on records ``X`` with targets ``y``, or on a map-style dataset of both."""
        records = records_of(X, y)
        if self._has_begun:
            raise RuntimeError(TRAINED_ALREADY)
        keeper = book_keeper(self.model, self.loss, *records.likes())
        plan = self.plan()
        n_steps = int(plan.settings["n_steps"])
        descent = Descent(keeper.parameters, self.optimizer, n_steps, self.schedule, 0.0)
        source = secure_source() if self.source is None else self.source
        try_evaluations(self.callbacks, self.model)

        def work(session: Session) -> None:
            self._has_begun = True
            with in_mode(self.model, training=True):
                self._train(plan, session, descent)
            keeper.state.check_frozen()

        done = release_answers(
            plan,
            lambda: OrderedRun(self._sum, Batches(records, keeper, source)),
            work,
            accountant=self.accountant,
            source=source,
            assumptions=records.assumptions,
        )
        self.privacy_: Guarantee = done.privacy
        self.plan_ = plan
        return self

    def _train(self, plan: Plan, session: Session, descent: Descent) -> None:
        n_steps = int(plan.settings["n_steps"])
        step = CorrelatedStep(self._sum, plan.settings["noise_multiplier"])
        session.decide("number of steps", n_steps)
        for number in range(n_steps):
            descent.step(session.ask(step, "steps") / self.batch_size, number)
            moment = Moment(number + 1, plan, self.model)
            if any([callback(moment) is True for callback in self.callbacks]):  # noqa: C419
                break
        descent.finish()
