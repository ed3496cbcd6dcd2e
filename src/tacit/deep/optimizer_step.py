"""Apply a noisy gradient: an optimiser step, a learning-rate schedule, an average."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tacit import checks

Array = npt.NDArray[np.float64]
# From the share of steps done to a factor of the learning rate; asked once for each step, before
# the charge.
Schedule = Callable[[float], float]


def decayed_late(progress: float) -> float:
    """Return 1 for the first 70 % of the steps, then decay linearly to 0.

    Examples
    --------
    >>> from tacit.deep import decayed_late
    >>> [round(decayed_late(p), 2) for p in (0.0, 0.7, 0.85)]
    [1.0, 1.0, 0.5]
    """
    return min(1.0, (1.0 - progress) / 0.3)


def constant(progress: float) -> float:  # noqa: ARG001
    """Return 1: the learning rate is constant."""
    return 1.0


def rate_factors(schedule: Schedule, n_steps: int) -> list[float]:
    """Return the factor of the learning rate of every step, computed before anything is charged.

    Examples
    --------
    >>> from tacit.deep.optimizer_step import decayed_late, rate_factors
    >>> [round(factor, 2) for factor in rate_factors(decayed_late, 10)][6:]
    [1.0, 1.0, 0.67, 0.33]
    """
    such_as = "pass a function of the share of steps done, such as tacit.deep.decayed_late."
    if not callable(schedule) or isinstance(schedule, type):
        raise TypeError(f"schedule must be a function, got {schedule!r}; {such_as}")
    factors = []
    for number in range(n_steps):
        try:
            factor = schedule(number / n_steps)
        except Exception as why:
            raise ValueError(
                f"schedule({number / n_steps:g}) raised {type(why).__name__}: {why}; {such_as} "
                "Nothing was charged."
            ) from why
        try:
            found = float(factor)
        except (TypeError, ValueError):
            found = math.nan
        if not 0.0 <= found < math.inf:
            raise ValueError(
                f"schedule({number / n_steps:g}) must be a factor of the learning rate, finite and "
                f"at least 0, got {factor!r}; {such_as} Nothing was charged."
            )
        factors.append(found)
    return factors


def check_steps_alone(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimizer that evaluates the loss itself, or that takes sparse gradients alone."""
    such_as = "pass one such as torch.optim.SGD or Adam. Nothing was charged."
    try:
        # of the class: schedulers of torch wrap the step of the instance
        inspect.signature(type(optimizer).step).bind(optimizer)
    except TypeError:
        raise TypeError(
            f"{type(optimizer).__name__} evaluates the loss by itself in each step, and the noise "
            f"of a step is drawn once; {such_as}"
        ) from None
    except ValueError:  # a step without a signature
        return
    if isinstance(optimizer, torch.optim.SparseAdam):
        raise TypeError(f"SparseAdam takes sparse gradients, and noise makes them dense; {such_as}")


class Descent:
    """The weights of a model during training; nothing here sees a record."""

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        optimizer: torch.optim.Optimizer,
        n_steps: int,
        schedule: Schedule,
        average_last: float,
    ) -> None:
        if not 0.0 <= checks.real("average_last", average_last) <= 1.0:
            raise ValueError(f"average_last must be in [0, 1], got {average_last!r}.")
        self._parameters, self._optimizer = list(parameters), optimizer
        check_steps_alone(optimizer)
        self._factors = rate_factors(schedule, n_steps)
        self._first_averaged = n_steps - round(average_last * n_steps)
        self._rates = [group["lr"] for group in optimizer.param_groups]
        self._sums = [torch.zeros_like(p) for p in parameters]
        # The current gradient, all parameters in one row, and the view of each of them.
        self._flat = torch.zeros(sum(p.numel() for p in parameters))
        sizes = [p.numel() for p in parameters]
        self._gradients = [
            part.view_as(p) for part, p in zip(self._flat.split(sizes), parameters, strict=True)
        ]
        self.n_averaged = 0
        self._check_parameters()
        optimizer.zero_grad(set_to_none=True)

    def _check_parameters(self) -> None:
        known = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        if {id(p) for p in self._parameters} - known:
            raise ValueError(
                "the optimizer does not have every trained parameter of the model; make it with "
                "model.parameters(), or freeze the others with requires_grad_(False)."
            )

    def step(self, gradient: Array, number: int) -> None:
        """Make one step along a noisy gradient."""
        self._flat.copy_(torch.from_numpy(gradient))
        for parameter, part in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = part
        factor = self._factors[number]
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        self._optimizer.step()
        if number >= self._first_averaged:
            for total, parameter in zip(self._sums, self._parameters, strict=True):
                total.add_(parameter.detach())
            self.n_averaged += 1

    def finish(self) -> None:
        """Load the average into the model, if there is one, and restore the rates."""
        self._optimizer.zero_grad(set_to_none=True)
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate
        if self.n_averaged:
            with torch.no_grad():
                for total, parameter in zip(self._sums, self._parameters, strict=True):
                    parameter.copy_(total / self.n_averaged)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: released weights and values derived from them."""
        return {
            "parameters": [p.detach().clone() for p in self._parameters],
            "optimizer": self._optimizer.state_dict(),
            "sums": [total.clone() for total in self._sums],
            "n_averaged": self.n_averaged,
        }

    def check_fits(self, state: dict[str, Any] | None) -> None:
        """Refuse the weights of a model of another shape, before anything is charged."""
        shapes = [tuple(p.shape) for p in self._parameters]
        if state is not None and [tuple(p.shape) for p in state["parameters"]] != shapes:
            raise ValueError(
                "the weights in the checkpoint belong to a model of another shape; make the model "
                "as it was when the training began."
            )

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        with torch.no_grad():
            _copy(state["parameters"], self._parameters)
            _copy(state["sums"], self._sums)
        self._optimizer.load_state_dict(state["optimizer"])
        self.n_averaged = int(state["n_averaged"])


def _copy(saved: Sequence[Tensor], into: Sequence[Tensor]) -> None:
    for value, place in zip(saved, into, strict=True):
        place.copy_(value)
