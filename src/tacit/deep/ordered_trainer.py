"""Training on records in an order of their own, without random batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from tacit import checks
from tacit.deep.callbacks import Callback, Moment
from tacit.deep.clip_state import FLOAT_SLACK, AdaptiveClip
from tacit.deep.clipping import BookKeeper, Clip, FlatClip, book_keeper
from tacit.deep.clipping.model_state import in_mode
from tacit.deep.correlated import CorrelatedNoise, TreeNoise
from tacit.deep.descent import Descent, Schedule, constant
from tacit.deep.records import Records, records_of
from tacit.deep.trainer import TRAINED_ALREADY, Loss, check_kinds, keys_for
from tacit.engine import Plan, release
from tacit.noise import Bounded, Norm, Release, Source, decide, gaussian, secure_source
from tacit.noise.release import priced
from tacit.privacy import AnyAccountant, Budget, Event, Gaussian, Guarantee, NonPrivate, Relation
from tacit.privacy.calibration import least_noise


class OrderedTrainer:
    """Trains a model on batches in the records' own order, with noise that is correlated.

    For records that cannot be drawn at random: a stream, a table too large to jump about in.
    Nothing is gained from random batches, and the noise is that of `TreeNoise` or `BandedNoise`,
    which cancels in the sum of all gradients so far. Where records can be drawn, `PrivateTrainer`
    learns more for the same budget.

    Parameters
    ----------
    model, loss, optimizer, clip, schedule, callbacks, accountant, source
        As in `PrivateTrainer`; the clip is fixed.
    budget
        What may be spent; relation REPLACE: the number of records is public, and so is which of
        them are in a batch, by their places.
    n_records
        The number of records.
    batch_size
        How many records in a row are a batch.
    epochs
        How often all records are met, in the same order.
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
        if isinstance(clip, AdaptiveClip):
            raise TypeError(
                "an AdaptiveClip moves between steps that share noise; pass a fixed one."
            )
        self.model, self.loss, self.optimizer, self.budget = model, loss, optimizer, budget
        self.n_records = checks.count("n_records", n_records)
        self.batch_size = checks.count("batch_size", batch_size)
        self.epochs = checks.count("epochs", epochs)
        self.noise: CorrelatedNoise = TreeNoise() if noise is None else noise
        self.clip: Clip = FlatClip() if clip is None else clip
        self.schedule, self.callbacks = schedule, tuple(callbacks)
        self.accountant, self.source = accountant, source
        self._has_begun = False

    @property
    def steps_per_epoch(self) -> int:
        """How many batches a pass has."""
        return -(-self.n_records // self.batch_size)

    def plan(self) -> Plan:
        """Return what a fit would run and what it would cost, without data."""
        if self.budget.relation is not Relation.REPLACE:
            raise ValueError(
                "batches in the records' order are known by their places, so that relation must be "
                "REPLACE: without a record all others would move up. Pass "
                "Budget(epsilon, delta, Relation.REPLACE)."
            )
        if self.budget.is_pure or self.budget.is_infinite:
            raise ValueError("the noise is Gaussian: pass a finite epsilon and a delta above 0.")
        z = least_noise(self._event, self.budget)
        steps = self.steps_per_epoch
        settings = {
            "n_steps": steps * self.epochs,
            "steps_per_epoch": steps,
            "batch_size": self.batch_size,
            "clip": self.clip.norm,
            "noise_multiplier": z,
            "spread": self.noise.spread(steps, self.epochs),
        }
        reason = f"{type(self.noise).__name__} on batches in the records' own order"
        return Plan("correlated_noise", self._event(z), self.budget, reason, settings)

    def _event(self, z: float) -> Event:
        return self.noise.event(z, self.steps_per_epoch, self.epochs, self.budget.relation)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on records ``X`` with targets ``y``, or on a map-style dataset of both."""
        records = records_of(X, y)
        if self._has_begun:
            raise RuntimeError(TRAINED_ALREADY)
        keeper = book_keeper(self.model, self.loss, *records.likes())
        plan = self.plan()
        n_steps = int(plan.settings["n_steps"])
        descent = Descent(keeper.parameters, self.optimizer, n_steps, self.schedule, 0.0)

        def work() -> Release[None]:
            self._has_begun = True
            with in_mode(self.model, training=True):
                event = self._trained(plan, keeper, descent, records)
            keeper.state.check_frozen()
            return Release(None, event)

        done = release(
            plan,
            work,
            accountant=self.accountant,
            source=self.source,
            assumptions=records.assumptions,
        )
        self.privacy_: Guarantee = done.privacy
        self.plan_ = plan
        return self

    def _trained(self, plan: Plan, keeper: BookKeeper, descent: Descent, records: Records) -> Event:
        source = secure_source() if self.source is None else self.source
        z, spread = plan.settings["noise_multiplier"], plan.settings["spread"]
        n_steps, each = int(plan.settings["n_steps"]), self.steps_per_epoch
        # Replacing a record takes one gradient out of a sum and puts another in.
        sensitivity = 2 * self.clip.norm * (1 + FLOAT_SLACK) * spread
        decide("number of steps", n_steps)
        state, events = self.noise.start(), set()
        for number in range(n_steps):
            if number % each == 0 and isinstance(self.noise, TreeNoise):
                state = self.noise.start()  # a tree for every pass
            places = self._batch(number % each, len(records))
            keys = keys_for(keeper, records, len(places), source)
            with keeper.unchanged():
                x, y, own = records.take(places, keys)
                total = keeper.sums(x, y, self.clip, keys=own).value.numpy()
            value = Bounded(state.to_release(total), sensitivity, Norm.L2, self.budget.relation)
            released = gaussian(value, z, source)
            events.add(released.event)
            descent.step(state.estimate(np.asarray(released.value)) / self.batch_size, number)
            moment = Moment(number + 1, plan, self.model)
            if any([callback(moment) is True for callback in self.callbacks]):  # noqa: C419
                break
        descent.finish()
        return self._receipt(events, plan, source)

    def _batch(self, place: int, n_given: int) -> Any:
        """Return the places of a batch; records beyond the announced number do not count."""
        start = place * self.batch_size
        return np.arange(start, min(start + self.batch_size, n_given, self.n_records))

    def _receipt(self, events: set[Event], plan: Plan, source: Source) -> Event:
        """Return what was planned, if every release had the planned noise."""
        bare = {e.would_be if isinstance(e, NonPrivate) else e for e in events}
        planned = Gaussian(plan.settings["noise_multiplier"], self.budget.relation)
        if bare != {planned}:
            raise RuntimeError(
                f"released {bare} but planned {planned}: the release is withheld. This is a bug in "
                "the mechanism; please report it as SECURITY.md says."
            )
        return priced(plan.event, source)
