"""A private network of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from torch import nn

from tacit.deep._neural import Neural
from tacit.deep.clipping import Clip, Like
from tacit.deep.networks import Factory
from tacit.privacy import AnyAccountant, Relation
from tacit.public_facts import Fact, classes_of, codes_of

Array = npt.NDArray[np.float64]


class NeuralClassifier(ClassifierMixin, Neural):
    """A network that tells classes apart, with a differential-privacy guarantee.

    Where rows are a table of columns, a linear model of `tacit.linear_model` is as good and costs
    less (docs/networks.md); a network is for images and the like.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent.
    network : {"mlp", "linear", "cnn"} or function, default="mlp"
        The architecture by its word, or a function from the shape of a record and the number of
        outputs to a torch module, a new one at each call; a copy of it is trained.
    hidden : sequence of int, default=(64,)
        The widths of the hidden layers of ``"mlp"``.
    image_shape : tuple or None
        Channels, height and width, where rows are images; needed by ``"cnn"``.
    classes : list, "infer" or None
        The classes, as in `tacit.linear_model.LogisticRegression`.
    n_records : int, "infer" or None
        An approximate number of records, public; must be known.
    batch_size : int or None
        Records in a batch, on average: a sixteenth of all, from 256 to 4096, by default.
    n_steps : int, default=300
        How many steps; the noise is calibrated to them.
    learning_rate, momentum : float
        Of the descent; the rate falls to 0 over the last 30 % of the steps.
    clip : float or Clip, default=0.1
        The greatest length of one record's gradient, or a way to clip.
    average_last : float, default=0.25
        The share of steps over which weights are averaged.
    relation : "add_remove"
        The one that batches drawn at random are proved for.
    accountant, random_state, verbose
        As in `LogisticRegression`; ``verbose=2`` shows a live line.

    Attributes
    ----------
    weights_ : array
        All weights of the network in one row, released.
    classes_, n_features_in_, feature_names_in_, privacy_, plan_
        As in `LogisticRegression`.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.deep import NeuralClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # no linear model tells these apart
    >>> model = NeuralClassifier(3.0, 1e-6, n_records=20_000, n_steps=200).fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        network: str | Factory = "mlp",
        hidden: Sequence[int] = (64,),
        image_shape: tuple[int, int, int] | None = None,
        classes: Sequence[Any] | str | None = None,
        n_records: int | str | None = None,
        batch_size: int | None = None,
        n_steps: int = 300,
        learning_rate: float = 2.0,
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
        self.classes = classes
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

    def _labels(self, y: Any) -> Fact[npt.NDArray[Any]]:
        classes = classes_of(self.classes, y)
        if classes.value.size < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got one class.")
        return classes

    def _n_outputs(self, labels: npt.NDArray[Any]) -> int:
        return int(labels.size)

    def _loss(self) -> nn.Module:
        return nn.CrossEntropyLoss(reduction="none")

    def _targets(
        self, labels: npt.NDArray[Any]
    ) -> tuple[Like, Callable[[Any, Any], tuple[Any, Any]]]:
        def records(rows: Any, given: Any) -> tuple[Any, Any]:
            codes, known = codes_of(given, labels)
            return np.asarray(rows)[known], codes[known]

        return Like((), torch.int64), records

    def _publish(self, labels: npt.NDArray[Any]) -> None:
        self.classes_ = labels

    def _known(self) -> npt.NDArray[Any]:
        classes: npt.NDArray[Any] = self.classes_
        return classes

    def decision_function(self, X: Any) -> Array:
        """Return the score of every record: one number, or one per class."""
        scores = self._outputs(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of every record."""
        best: npt.NDArray[Any] = self._outputs(X).argmax(axis=1)
        chosen: npt.NDArray[Any] = self.classes_[best]
        return chosen

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class for every record."""
        result: Array = softmax(self._outputs(X), axis=1)
        return result

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        result: Array = log_softmax(self._outputs(X), axis=1)
        return result
