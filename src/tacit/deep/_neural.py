"""The shell of networks as scikit-learn estimators."""

from __future__ import annotations

import secrets
import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tacit import checks
from tacit.deep.callbacks import Callback, Progress
from tacit.deep.clipping import Clip, FlatClip, Like
from tacit.deep.descent import decayed_late
from tacit.deep.networks import network_of
from tacit.deep.planning import EpochCost, Sampling, check_budget, epsilon_by_epoch, plan_training
from tacit.deep.records import TensorRecords
from tacit.deep.trainer import PrivateTrainer
from tacit.engine import Plan
from tacit.linear_model._tables import note_columns, rows_to_ask_about
from tacit.privacy import Budget
from tacit.public_facts import (
    Assumed,
    Fact,
    assumptions_of,
    budget_of,
    check_shape,
    informed,
    n_records_of,
    source_of,
    warn_if_weak,
    with_people,
)
from tacit.records import UnreadTable
from tacit.records.unread import has_people, shown_rows

_BLOCK = 4096  # rows that are asked about at once
_LEAST_BATCH, _MOST_BATCH, _BATCHES = 256, 4096, 16


@dataclass(frozen=True)
class UnreadRows:
    """A table that is read when its training has been charged."""

    table: UnreadTable
    shape: tuple[int, ...]
    target: Like
    targets: Callable[[Any, Any], tuple[Any, Any]]

    def likes(self) -> tuple[Like, Like]:
        """Return the shape and type of a record and of a target."""
        return Like(self.shape, torch.float32), self.target

    def opened(self) -> TensorRecords:
        """Read rows and labels, and return the records that count."""
        rows, labels = self.targets(*self.table.read())
        return TensorRecords(np.asarray(rows).reshape(len(rows), *self.shape), labels)


class Neural(BaseEstimator):
    """What a network of classes and one of numbers share."""

    @abstractmethod
    def _labels(self, y: Any) -> Fact[Any]:
        """Return what is public about labels."""

    @abstractmethod
    def _n_outputs(self, labels: Any) -> int: ...

    @abstractmethod
    def _loss(self) -> nn.Module: ...

    @abstractmethod
    def _targets(self, labels: Any) -> tuple[Like, Callable[[Any, Any], tuple[Any, Any]]]: ...

    @abstractmethod
    def _publish(self, labels: Any) -> None: ...

    def _shape(self, n_features: int) -> tuple[int, ...]:
        if self.image_shape is None:
            return (n_features,)
        shape = tuple(checks.count("image_shape", size) for size in self.image_shape)
        if int(np.prod(shape)) != n_features:
            raise ValueError(
                f"image_shape={shape} has {int(np.prod(shape))} numbers, and a row has "
                f"{n_features}; pass (channels, height, width) whose product is that."
            )
        return shape

    def _clip(self) -> Clip:
        return self.clip if isinstance(self.clip, Clip) else FlatClip(self.clip)

    def _sampling(self, n_records: int | None) -> Sampling:
        if n_records is None:
            raise ValueError(
                "a network divides by the expected size of a batch: declare n_records, an "
                "approximate public number of records, or 'infer' to publish their number."
            )
        size = max(min(n_records, _LEAST_BATCH), min(n_records // _BATCHES, _MOST_BATCH))
        return Sampling(n_records, size if self.batch_size is None else self.batch_size)

    def _plan(self, budget: Budget, sampling: Sampling) -> Plan:
        return plan_training(sampling, budget, self._clip(), n_steps=self.n_steps)

    def plan(self, n_features: int, n_records: int | None = None) -> Plan:
        """Return what a fit would run and what it would cost, without data.

        Parameters
        ----------
        n_features
            Columns of the table to come.
        n_records
            Rows of it, if ``n_records`` of the estimator does not say.
        """
        check_shape(n_features, n_records)
        self._shape(n_features)
        budget = budget_of(self.epsilon, self.delta, self.relation)
        public = n_records_of(self.n_records, n_records, budget.relation)
        return self._plan(budget, self._sampling(public.value or n_records))

    def epsilon_by_epoch(self) -> list[EpochCost]:
        """Return what a fitted training had cost after every epoch."""
        check_is_fitted(self, "privacy_")
        return epsilon_by_epoch(self.plan_)

    def fit(self, X: Any, y: Any, unit: Any = None) -> Self:
        """Fit to records ``X`` (one a row) with labels ``y``, read when the plan is charged.

        ``unit``, whose each record is, is refused: gradients are clipped record by record.
        """
        told = informed(self, X)
        labels = told._labels(y)
        table, names = note_columns(self, X, y, unit=unit, sparse=False)
        budget = with_people(budget_of(told.epsilon, told.delta, told.relation), has_people(table))
        check_budget(budget)
        public = n_records_of(told.n_records, shown_rows(table), budget.relation)
        warn_if_weak(budget, public.value)
        shape = self._shape(table.n_columns)
        sampling = self._sampling(public.value)
        module = self._fresh(shape, self._n_outputs(labels.value))
        trainer = self._trainer(module, budget, sampling)
        rows = UnreadRows(table, shape, *self._targets(labels.value))
        self._train(trainer, rows, (labels, public, names))
        self.weights_ = parameters_to_vector(module.parameters()).detach().numpy().copy()
        self._publish(labels.value)
        return self

    def _train(self, trainer: PrivateTrainer, rows: UnreadRows, facts: tuple[Assumed, ...]) -> None:
        trainer.fit_unread(rows, assumptions_of(*facts))
        self.privacy_, self.plan_ = trainer.privacy_, trainer.plan_
        if self.verbose:
            sys.stderr.write(f"{self.plan_}\n{self.privacy_.statement()}\n")

    def _fresh(self, shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        """Return a network with new weights, which are public."""
        seed = secrets.randbits(48)
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return network_of(self.network, shape, self.hidden, n_outputs, to_train=True)

    def _trainer(self, module: nn.Module, budget: Budget, sampling: Sampling) -> PrivateTrainer:
        rate = checks.positive("learning_rate", self.learning_rate)
        momentum = checks.real("momentum", self.momentum)
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {momentum!r}.")
        progress: tuple[Callback, ...] = (Progress(),) if self.verbose > 1 else ()
        return PrivateTrainer(
            module,
            self._loss(),
            torch.optim.SGD(module.parameters(), lr=rate, momentum=momentum),
            budget,
            n_records=sampling.n_records,
            batch_size=sampling.batch_size,
            n_steps=self.n_steps,
            clip=self._clip(),
            schedule=decayed_late,
            average_last=self.average_last,
            callbacks=progress,
            accountant=self.accountant,
            source=source_of(self.random_state),
        )

    def module(self) -> nn.Module:
        """Return the trained network as a torch module of its own, ready to predict."""
        check_is_fitted(self, "weights_")
        made = self.unfilled()
        vector_to_parameters(torch.from_numpy(self.weights_.copy()), made.parameters())
        return made.eval()

    def unfilled(self) -> nn.Module:
        """Return a network of the shape that was fitted, with other weights."""
        shape = self._shape(self.n_features_in_)
        return network_of(self.network, shape, self.hidden, self._n_outputs(self._known()))

    @abstractmethod
    def _known(self) -> Any:
        """Return what a fit released about labels."""

    def _outputs(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the network's outputs for rows, in double precision and some at a time."""
        check_is_fitted(self, "weights_")
        rows = np.asarray(rows_to_ask_about(self, X), dtype=np.float64)
        module, shape = self.module().double(), self._shape(self.n_features_in_)
        with torch.no_grad():
            parts = [
                module(torch.from_numpy(rows[start : start + _BLOCK]).reshape(-1, *shape)).numpy()
                for start in range(0, len(rows), _BLOCK)
            ]
        return np.concatenate(parts)
