"""A private network of a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import RegressorMixin
from torch import nn

from tacit.deep._neural import Neural
from tacit.deep.clipping import Clip, Like
from tacit.deep.networks import Factory
from tacit.privacy import AnyAccountant, Relation
from tacit.public_facts import Fact, label_range_of
from tacit.records import as_numbers

Array = npt.NDArray[np.float64]


class NeuralRegressor(RegressorMixin, Neural):
    """A network that predicts a number, with a differential-privacy guarantee.

    Labels are scaled to [-1, 1] by their public range, and predictions back; the loss is squared.

    Parameters
    ----------
    label_range : tuple, "infer" or None
        The range that labels are clipped to, as in `tacit.linear_model.LinearRegression`.
    epsilon, delta, network, hidden, image_shape, n_records, batch_size, n_steps, learning_rate, \
momentum, clip, average_last, relation, accountant, random_state, verbose
        As in `NeuralClassifier`.

    Attributes
    ----------
    weights_ : array
        All weights of the network in one row, released.
    label_range_ : tuple
        The range of the labels.
    n_features_in_, feature_names_in_, privacy_, plan_
        As in `NeuralClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.deep import NeuralRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> y = np.abs(X[:, 0])
    >>> told = {"label_range": (0, 1), "n_records": 20_000, "n_steps": 200}
    >>> NeuralRegressor(3.0, 1e-6, **told).fit(X, y).predict(X).shape
    (20000,)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        network: str | Factory = "mlp",
        hidden: Sequence[int] = (64,),
        image_shape: tuple[int, int, int] | None = None,
        label_range: tuple[float, float] | str | None = None,
        n_records: int | str | None = None,
        batch_size: int | None = None,
        n_steps: int = 300,
        learning_rate: float = 1.0,
        momentum: float = 0.9,
        clip: float | Clip = 0.1,
        average_last: float = 0.25,
        relation: Relation | str = "add_remove",
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.network = network
        self.hidden = hidden
        self.image_shape = image_shape
        self.label_range = label_range
        self.n_records = n_records
        self.batch_size = batch_size
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.clip = clip
        self.average_last = average_last
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _labels(self, y: Any) -> Fact[tuple[float, float]]:
        declared = label_range_of(self.label_range, y)
        low, high = declared.value
        if not -np.inf < low < high < np.inf:
            raise ValueError(
                f"label_range must be finite and in order, got {declared.value}; a network's "
                "outputs are scaled by it."
            )
        return declared

    def _n_outputs(self, labels: Any) -> int:
        return 1

    def _loss(self) -> nn.Module:
        return nn.MSELoss(reduction="none")

    def _targets(
        self, labels: tuple[float, float]
    ) -> tuple[Like, Callable[[Any, Any], tuple[Any, Any]]]:
        low, high = labels

        def records(rows: Any, given: Any) -> tuple[Any, Any]:
            numbers = np.clip(as_numbers(given), low, high)
            return rows, (2 * (numbers - low) / (high - low) - 1)[:, None]

        return Like((1,), torch.float32), records

    def _publish(self, labels: tuple[float, float]) -> None:
        self.label_range_ = labels

    def _known(self) -> tuple[float, float]:
        low, high = self.label_range_
        return low, high

    def predict(self, X: Any) -> Array:
        """Return the predicted number of every record, within the range of the labels."""
        outputs = self._outputs(X)[:, 0]
        low, high = self.label_range_
        return np.clip(low + (outputs + 1) / 2 * (high - low), low, high)
