"""Train any torch module privately: sampling, clipping, noise and accounting in one place."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from tacit import checks
from tacit.deep.callbacks import (
    Callback,
    Moment,
    checked_callbacks,
    evaluate,
    try_evaluations,
)
from tacit.deep.checkpoint import Checkpoint, CheckpointError, checkpoint_path, has_booked
from tacit.deep.clipping import Clip, FlatClip
from tacit.deep.clipping.book_keeping import BookKeeper
from tacit.deep.clipping.clip import AdaptiveState, state_of
from tacit.deep.clipping.mixing_check import book_keeper
from tacit.deep.clipping.model_state import in_mode
from tacit.deep.optimizer_step import Descent, Schedule, constant
from tacit.deep.planning import EpochCost, Sampling, epsilon_by_epoch, plan_training, with_slots
from tacit.deep.records import Opened, PublicData, Unread, records_of
from tacit.engine import Plan, Released, release_answers
from tacit.noise import Source, draw_ahead
from tacit.noise.exact.lattice import Ahead
from tacit.privacy import AnyAccountant, Budget
from tacit.privacy.accountant import planning_budget
from tacit.queries import GaussianNoise, NoisySum, PoissonSample, Session

Loss = Callable[[Any, torch.Tensor], torch.Tensor]


class PrivateTrainer:
    """Train a model on records with a differential-privacy guarantee for the weights.

    The trainer draws the batches (Poisson samples, new at every step), clips every
    record's gradient, adds noise to their sum and accounts for it, so that none of these can be
    forgotten. All planned steps are charged before the first record is read.

    Parameters
    ----------
    model
        Any module that processes the records of a batch independently; it is trained in place.
    loss
        A function of outputs and targets to one loss per record, such as a torch loss with
        ``reduction="none"``.
    optimizer
        A torch optimiser of the model's parameters.
    budget
        The privacy budget; relation ADD_REMOVE.
    n_records
        An approximate public number of records; sums are divided by the expected batch size.
    batch_size
        The average batch size.
    n_steps, epochs
        The length of the training; the noise is calibrated to it.
    noise_multiplier
        The noise of a step, in units of the clip: trains until the budget is spent, or for the
        given length, whichever is shorter.
    clip
        `FlatClip`, `PerLayerClip`, `AutomaticClip` or `AdaptiveClip`.
    schedule
        A function of the share of steps done to a factor of the learning rate; it is asked once
        for each step, before the charge.
    average_last
        The share of steps, at the end, over which weights are averaged.
    micro_batch
        The number of records per pass, by default chosen to keep memory small; it changes
        nothing else.
    callbacks
        Called after every step with a `Moment`; one that returns True stops the training.
    checkpoint
        A file to resume from: after a crash, training continues with the remaining steps.
    checkpoint_every
        The number of steps between saved weights.
    accountant
        A budget shared with other releases, charged once.
    source
        The source of randomness; a seeded one voids the guarantee.

    Attributes
    ----------
    privacy_ : Guarantee
        The guarantee of the training.
    plan_ : Plan
        The plan of the training.

    Notes
    -----
    **Guarantee**

    1. The noise, the sampling rate and the number of steps are compared with the charge;
       if they differ nothing is released.
    2. An empty batch releases noise like any other; sums are divided by public numbers only.
    3. A record adds zeros if its gradient is not finite, or if the model or the loss raises.
    4. A step that was begun before a crash is never repeated.
    5. A trainer trains once: its guarantee covers all of its training.
    6. Dropout masks are derived from a secret key of each record. A change of buffers or frozen
       parameters stops the training.

    **Assumes** what `tacit.deep.clipping` assumes, that the model stores no records by
    itself, and that checkpoints are not copied to be resumed twice.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from torch import nn
    >>> from tacit import Budget
    >>> from tacit.deep import PrivateTrainer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 3)).astype("float32")
    >>> y = (X[:, 0] > 0).astype("int64")
    >>> model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    >>> trainer = PrivateTrainer(
    ...     model,
    ...     nn.CrossEntropyLoss(reduction="none"),
    ...     torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9),
    ...     Budget(3.0, 1e-5),
    ...     n_records=4000,
    ...     batch_size=400,
    ...     n_steps=60,
    ... ).fit(X, y)
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
        batch_size: int = 1024,
        n_steps: int | None = None,
        epochs: float | None = None,
        noise_multiplier: float | None = None,
        clip: Clip | None = None,
        schedule: Schedule = constant,
        average_last: float = 0.0,
        micro_batch: int | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 50,
        accountant: AnyAccountant | None = None,
        source: Source | None = None,
    ) -> None:
        check_kinds(model, optimizer, budget, clip)
        check_source(source)
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.budget = planning_budget(budget, accountant)
        self.sampling = Sampling(n_records, batch_size)
        if n_steps is not None and epochs is not None:
            raise ValueError("pass n_steps or epochs, not both: one determines the other.")
        if epochs is not None:
            n_steps = max(1, math.ceil(checks.positive("epochs", epochs) / self.sampling.rate))
        self.n_steps, self.noise_multiplier = n_steps, noise_multiplier
        self.clip: Clip = FlatClip() if clip is None else clip
        self.schedule, self.average_last = schedule, average_last
        self.micro_batch = None if micro_batch is None else checks.count("micro_batch", micro_batch)
        self.callbacks = checked_callbacks(callbacks)
        self.checkpoint = None if checkpoint is None else Checkpoint(checkpoint_path(checkpoint))
        self.checkpoint_every = checks.count("checkpoint_every", checkpoint_every)
        self.accountant, self.source = accountant, source
        self._begun: _Begun | None = None
        if checkpoint is not None and source is not None and not source.is_secure:
            raise ValueError(
                "a seeded source restarts after a crash and would repeat its noise; leave out "
                "source or checkpoint."
            )

    def plan(self) -> Plan:
        """Plan a fit and its cost, without data."""
        return plan_training(
            self.sampling,
            self.budget,
            self.clip,
            n_steps=self.n_steps,
            noise_multiplier=self.noise_multiplier,
        )

    def epsilon_by_epoch(self, epochs: Sequence[int] | None = None) -> list[EpochCost]:
        """Return the cost of the planned training after every epoch, or after some."""
        return epsilon_by_epoch(self.plan(), epochs)

    def evaluate(
        self,
        data: PublicData,
        metric: Callable[[torch.Tensor, torch.Tensor], float] | None = None,
    ) -> float:
        """Return a score on public data: the accuracy, or a metric."""
        return evaluate(self.model, data, metric)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on records ``X`` with targets ``y``, or on a map-style dataset of both.

        Arrays, tensors and memory maps are read in batches, after the charge. A trainer
        trains once; with a ``checkpoint`` it continues after an interruption.
        """
        records = records_of(X, y)
        return self.fit_unread(records, records.assumptions)

    def fit_unread(self, records: Unread, assumptions: Sequence[str] = ()) -> Self:
        """Train on records that are opened after the charge.

        ``assumptions`` are sentences that the guarantee must repeat.
        """
        self._refuse_while_training()
        if self._begun is not None and not self._may_go_on(self._begun):
            raise RuntimeError(TRAINED_ALREADY)
        keeper = book_keeper(self.model, self.loss, *records.likes(), self.micro_batch)
        run = self._run(keeper, keeper.parameters, records)
        try_evaluations(self.callbacks, self.model)
        self.privacy_, self.plan_ = run.released(assumptions).privacy, run.plan
        return self

    def restore(self) -> Self:
        """Load the weights of a finished training from its checkpoint, without records.

        An accountant without its charge is charged anew.
        """
        if self.checkpoint is None or not self.checkpoint.exists:
            raise CheckpointError(
                "there is no checkpoint to restore from; pass checkpoint=, the file of a finished "
                "training."
            )
        self._refuse_while_training()
        trained = [p for p in self.model.parameters() if p.requires_grad]
        run = self._run(None, trained, None)
        self.privacy_, self.plan_ = run.restored().privacy, run.plan
        return self

    def _run(
        self, keeper: BookKeeper | None, trained: Sequence[nn.Parameter], records: Unread | None
    ) -> _Run:
        plan = self.plan()
        n_steps = int(plan.settings["n_steps"])
        descent = Descent(trained, self.optimizer, n_steps, self.schedule, self.average_last)
        return _Run(self, plan, keeper, descent, records)

    def _begin(self) -> None:
        """Record that training begins: from here on the weights depend on records."""
        self._begun = _Begun(None if self.checkpoint is None else self.checkpoint.path)

    def _refuse_while_training(self) -> None:
        if self.checkpoint is not None and self.checkpoint.is_open:
            raise RuntimeError("this trainer is training now; wait until it ends.")

    def _may_go_on(self, begun: _Begun) -> bool:
        """Return whether an interrupted training is in the checkpoint that it began with."""
        if self.checkpoint is None or hasattr(self, "privacy_"):
            return False
        return self.checkpoint.path == begun.path and self.checkpoint.exists


@dataclass(frozen=True)
class _Begun:
    """A training that has read records, and its checkpoint, if any."""

    path: Path | None


TRAINED_ALREADY = (
    "this trainer has trained its model, and its guarantee covers that training alone; more steps "
    "would cost more. Make a new trainer: with a new model, or with this one, whose "
    "two guarantees then add up (tacit.privacy.Accountant and tacit.ledger.Ledger add them). "
    "Nothing was charged."
)


class _Run:
    """One training, from the charge to the release."""

    def __init__(
        self,
        trainer: PrivateTrainer,
        plan: Plan,
        keeper: BookKeeper | None,
        descent: Descent,
        records: Unread | None,
    ) -> None:
        self._trainer, self.plan, self._keeper = trainer, plan, keeper
        self._descent, self._unread = descent, records
        self._sampling, self._z = trainer.sampling, plan.settings["noise_multiplier"]
        self._expected = self._sampling.rate * self._sampling.n_records
        self._state = state_of(trainer.clip, self._z or 1.0, self._expected)
        self._n_steps = int(plan.settings["n_steps"])

    def released(self, assumptions: Sequence[str]) -> Released[None]:
        """Charge, train and compare; a training charged by another process is continued."""
        checkpoint, accountant = self._trainer.checkpoint, self._trainer.accountant
        if checkpoint is None:
            return self._charged(accountant, assumptions, lambda session: None)
        with closing(checkpoint):
            if not checkpoint.exists:
                checkpoint.check_place()

                def start(session: Session) -> None:
                    checkpoint.start(self.plan, session.booking, assumptions)

                return self._charged(accountant, assumptions, start)
            saved_state = checkpoint.resume(self.plan)
            if checkpoint.n_begun >= self._n_steps or checkpoint.is_finished:
                take = (
                    "Its weights were lost" if saved_state is None else "Take them with restore()"
                )
                raise CheckpointError(
                    f"the training in {checkpoint.path} has ended: its weights are of its original "
                    f"records, and no step is left for these. {take}; or name another "
                    "file, which is charged anew."
                )
            said = tuple(dict.fromkeys((*checkpoint.assumptions, *assumptions)))
            return self._resumed(checkpoint, saved_state, said, train=True)

    def restored(self) -> Released[None]:
        """Load the weights of a finished training, and charge if that was not done."""
        checkpoint = self._trainer.checkpoint
        assert checkpoint is not None
        with closing(checkpoint):
            saved_state = checkpoint.resume(self.plan)
            ended = checkpoint.n_begun >= self._n_steps or checkpoint.is_finished
            if not ended:
                raise CheckpointError(
                    f"the training in {checkpoint.path} has not ended; continue with fit."
                )
            if saved_state is None:
                raise CheckpointError(
                    f"the training in {checkpoint.path} ended before weights were saved, so "
                    "there are none; name another file, which is charged anew."
                )
            return self._resumed(checkpoint, saved_state, checkpoint.assumptions, train=False)

    def _resumed(
        self,
        checkpoint: Checkpoint,
        saved_state: dict[str, Any] | None,
        assumptions: Sequence[str],
        *,
        train: bool,
    ) -> Released[None]:
        self._descent.check_fits(None if saved_state is None else saved_state["descent"])
        accountant = self._trainer.accountant
        booked = has_booked(accountant, checkpoint.booking, self.plan.event)
        payer = None if booked else accountant
        done = self._charged(
            payer, assumptions, lambda session: self._restore(saved_state), train=train
        )
        if not booked:
            return done
        return replace(done, privacy=replace(done.privacy, booking=checkpoint.booking))

    def _charged(
        self,
        accountant: AnyAccountant | None,
        assumptions: Sequence[str],
        prepare: Callable[[Session], None],
        *,
        train: bool = True,
    ) -> Released[None]:
        def work(session: Session) -> None:
            self._trainer._begin()
            prepare(session)
            if train:
                self._train(session)
            self._descent.finish()

        return release_answers(
            with_slots(self.plan),
            lambda: self._unread,  # `Opened` opens them after the checkpoint is written
            work,
            accountant=accountant,
            source=self._trainer.source,
            assumptions=assumptions,
        )

    def _restore(self, saved_state: dict[str, Any] | None) -> None:
        if saved_state is None:
            return
        self._descent.restore(saved_state["descent"])
        if isinstance(self._state, AdaptiveState):
            self._state.norm = float(saved_state["norm"])

    def _train(self, session: Session) -> None:
        """Make the remaining steps."""
        trainer, checkpoint, keeper = self._trainer, self._trainer.checkpoint, self._keeper
        assert keeper is not None
        first = checkpoint.n_begun if checkpoint else 0
        session = session.on(Opened(keeper, trainer.micro_batch))
        session.decide("number of steps", self._n_steps)
        n_numbers = keeper.n_parameters + isinstance(self._state, AdaptiveState)
        repeatable = trainer.source is not None and not trainer.source.is_secure
        with in_mode(trainer.model, training=True), ThreadPoolExecutor(1, "tacit-noise") as pool:

            def drawn(number: int) -> Future[Ahead] | None:
                """Return noise that is drawn while the previous batch runs."""
                if repeatable or not self._z or number >= self._n_steps:
                    return None
                return pool.submit(draw_ahead, n_numbers)

            ahead = drawn(first)
            for number in range(first, self._n_steps):
                if checkpoint is not None:
                    checkpoint.begin_step()
                done = number + 1
                noise, ahead = ahead, drawn(done)
                self._step(number, session.on(PoissonSample(self._sampling.rate)), noise)
                is_saved = done % trainer.checkpoint_every == 0 or done == self._n_steps
                if checkpoint is not None and is_saved:
                    checkpoint.keep(self._saved_state())
                moment = Moment(done, self.plan, trainer.model)
                if any([callback(moment) is True for callback in trainer.callbacks]):  # noqa: C419
                    break
        keeper.state.check_frozen()
        if checkpoint is not None:
            checkpoint.keep(self._saved_state())
            checkpoint.finish()

    def _step(self, number: int, sample: Session, noise: Future[Ahead] | None) -> None:
        """Ask for the sum of clipped gradients of a new sample, and step along it."""
        statistic = self._state.statistic
        if self._z:
            query = NoisySum(statistic, GaussianNoise(self._z))
            released = sample.ask(query, "steps", noise=None if noise is None else noise.result())
        else:
            released = sample.without_noise(lambda batch: statistic.total(batch, sample.facts))
        gradient = self._state.gradient(np.asarray(released))
        self._descent.step(gradient / self._expected, number)

    def _saved_state(self) -> dict[str, Any]:
        return {"descent": self._descent.state(), "norm": self._state.clip.max_grad_norm}


def check_source(source: object) -> None:
    """Refuse what is no source of randomness."""
    if source is not None and not hasattr(source, "is_secure"):
        raise TypeError(
            f"source must be a source of randomness, got {type(source).__name__}; leave it out, or "
            "pass tacit.noise.seeded_source(...) for a test."
        )


def check_kinds(model: Any, optimizer: Any, budget: Any, clip: Any) -> None:
    """Refuse wrong types of module, optimiser, budget and clip."""
    for name, value, kind, such_as in (
        ("model", model, nn.Module, "an instance of one"),
        ("optimizer", optimizer, torch.optim.Optimizer, "torch.optim.SGD(model.parameters(), 1.0)"),
        ("budget", budget, Budget, "Budget(epsilon, delta)"),
        ("clip", FlatClip() if clip is None else clip, Clip, "FlatClip(max_grad_norm)"),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} must be of the kind {kind.__name__}, got {type(value).__name__}; pass "
                f"{such_as}."
            )
