"""Observe the training of a network: steps, epsilon, and scores on public data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from tacit.deep.clipping.model_state import in_mode
from tacit.deep.clipping.randomness import record_keys
from tacit.deep.records import PublicData, records_of
from tacit.engine import Plan
from tacit.privacy import Guarantee, Repeated, SampledGaussian


@dataclass(frozen=True)
class Moment:
    """The state after a step. The weights are released; nothing here is of a single record."""

    step: int
    plan: Plan
    model: nn.Module

    @property
    def n_steps(self) -> int:
        """The number of planned steps."""
        return int(self.plan.settings["n_steps"])

    @property
    def ends_epoch(self) -> bool:
        """Whether an epoch, or the training, ends here."""
        each = int(self.plan.settings["steps_per_epoch"])
        return self.step % each == 0 or self.step == self.n_steps

    def epsilon(self) -> float:
        """Return the cost of the steps so far at the plan's delta; all are charged already."""
        event = self.plan.event
        if isinstance(event, Repeated) and isinstance(event.event, SampledGaussian):
            event = replace(event, count=self.step)  # correlated noise costs the whole at once
        return Guarantee(event).epsilon(self.plan.budget.delta)


# Returns True to stop; the charge stays.
Callback = Callable[[Moment], bool | None]


def checked_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Return callbacks; refuse what cannot be called with a moment.

    Examples
    --------
    >>> from tacit.deep.callbacks import checked_callbacks
    >>> checked_callbacks([print])
    (<built-in function print>,)
    """
    such_as = "pass functions of a tacit.deep.callbacks.Moment, callbacks=[...]."
    try:
        found = tuple(callbacks)
    except TypeError:
        raise TypeError(f"callbacks must be a sequence, got {callbacks!r}; {such_as}") from None
    for callback in found:
        if isinstance(callback, type):
            raise TypeError(
                f"callbacks has the class {callback.__name__} itself; pass {callback.__name__}()."
            )
        if not callable(callback):
            raise TypeError(f"callbacks has {callback!r}, which cannot be called; {such_as}")
        try:
            inspect.signature(callback).bind(None)
        except TypeError:
            raise TypeError(
                f"callbacks has {callback!r}, which does not take one argument; {such_as}"
            ) from None
        except ValueError:  # a built-in without a signature
            continue
    return found


def try_evaluations(callbacks: tuple[Callback, ...], model: nn.Module) -> None:
    """Score the untrained model on public data, so that a mistake there shows before the charge."""
    for callback in callbacks:
        if not isinstance(callback, PublicEvaluation):
            continue
        try:
            evaluate(model, callback.data, callback.metric)
        except Exception as why:
            raise ValueError(
                "PublicEvaluation could not score the untrained model on its public data "
                f"({type(why).__name__}: {why}); check the shapes of PublicData(X, y), and that "
                "metric is a function of outputs and targets to a number. Nothing was charged."
            ) from why


@dataclass
class Progress:
    """Print a live line: steps, and epsilon after every epoch.

    Examples
    --------
    >>> from tacit.deep import Progress
    >>> Progress().epsilon is None
    True
    """

    epsilon: float | None = None
    _line: Any = field(default=None, repr=False)
    _task: Any = field(default=None, repr=False)

    def __call__(self, moment: Moment) -> None:
        """Show another step."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Line

        if self._line is None:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._line = Line(*columns, TimeRemainingColumn())
            self._task = self._line.add_task("training", total=moment.n_steps)
            self._line.start()
        if moment.ends_epoch:
            self.epsilon = moment.epsilon()
            words = f"epsilon {self.epsilon:.3f} of {moment.plan.budget.epsilon:g}"
            self._line.update(self._task, description=words)
        self._line.update(self._task, completed=moment.step)
        if moment.step == moment.n_steps:
            self._line.stop()


@dataclass
class PublicEvaluation:
    """Score the model on public data after every epoch.

    The untrained model is scored once before the training is charged, so that a wrong shape or
    metric costs nothing.

    Parameters
    ----------
    data
        Records that are declared public; an evaluation on private ones would be a release.
    metric
        A function of outputs and targets to a number; by default the accuracy.

    Attributes
    ----------
    scores : list of (step, score)

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.deep import PublicData, PublicEvaluation
    >>> PublicEvaluation(PublicData(np.zeros((4, 2)), np.zeros(4))).scores
    []
    """

    data: PublicData
    metric: Callable[[torch.Tensor, torch.Tensor], float] | None = None
    scores: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_public(self.data)

    def __call__(self, moment: Moment) -> None:
        """Record a score at the end of an epoch."""
        if moment.ends_epoch:
            self.scores.append((moment.step, evaluate(moment.model, self.data, self.metric)))


def check_public(data: Any) -> None:
    """Refuse to evaluate on data that are not declared public."""
    if not isinstance(data, PublicData):
        raise TypeError(
            "an evaluation on private records is a release without a charge; declare them "
            "public with PublicData(X, y), or evaluate the estimator with tacit.metrics, "
            "which charges for it."
        )


def right_share(outputs: torch.Tensor, targets: torch.Tensor) -> float:
    """Return the accuracy: the share of records whose greatest output is their class."""
    return float((outputs.argmax(1) == targets).float().mean())


def evaluate(
    model: nn.Module,
    data: PublicData,
    metric: Callable[[torch.Tensor, torch.Tensor], float] | None = None,
    batch_size: int = 1024,
) -> float:
    """Score a model on public data; its mode is restored."""
    import numpy as np

    check_public(data)
    records, parts = records_of(data.X, data.y), []
    with in_mode(model, training=False), torch.no_grad():
        for start in range(0, len(records), batch_size):
            places = np.arange(start, min(start + batch_size, len(records)))
            x, y, _ = records.take(places, record_keys(len(places)))
            parts.append((model(x), y))
    outputs, targets = (torch.cat(some) for some in zip(*parts, strict=True))
    return float((metric or right_share)(outputs, targets))
