"""Fit private neural networks as scikit-learn estimators: a classifier and a regressor."""

from __future__ import annotations

import copy
import secrets
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from tacit import checks
from tacit.deep.callbacks import Callback, Progress
from tacit.deep.clipping import Clip, FlatClip
from tacit.deep.clipping.mixing_check import Like
from tacit.deep.clipping.model_state import in_mode
from tacit.deep.networks import Factory, network_of, parameter_count
from tacit.deep.optimizer_step import decayed_late
from tacit.deep.planning import EpochCost, Sampling, check_budget, epsilon_by_epoch, plan_training
from tacit.deep.records import TensorRecords
from tacit.deep.trainer import PrivateTrainer
from tacit.engine import Plan
from tacit.estimators.parameters import (
    DECLARED_CLASSES,
    Assumed,
    ClassesFact,
    Fact,
    assumptions_of,
    budget_of,
    check_shape,
    classes_of,
    codes_of,
    is_inferred,
    label_range_of,
    n_records_of,
    publish_classes,
    source_of,
    warn_if_weak,
    with_people,
    with_table_facts,
)
from tacit.estimators.tables import note_columns, rows_for_prediction
from tacit.privacy import AnyAccountant, Budget, Relation
from tacit.records.lazy_table import UnreadTable, has_people, shown_rows
from tacit.records.rows_and_labels import as_numbers
from tacit.registry import ACCURACY, NAMES, R2, Example, Link, ModelSpec, Predicts
from tacit.saving.container import NotAModel

_BLOCK = 4096  # rows per prediction batch
_LEAST_BATCH, _MOST_BATCH, _BATCHES = 256, 4096, 16


@dataclass(frozen=True)
class UnreadRows:
    """A table that is read after its training is charged."""

    table: UnreadTable
    shape: tuple[int, ...]
    target: Like
    targets: Callable[[Any, Any], tuple[Any, Any]]

    def likes(self) -> tuple[Like, Like]:
        """Return the shape and type of a record and of a target."""
        return Like(self.shape, torch.float32), self.target

    def opened(self) -> TensorRecords:
        """Read rows and labels, and return the valid records."""
        rows, labels = self.targets(*self.table.read())
        return TensorRecords(np.asarray(rows).reshape(len(rows), *self.shape), labels)


class Neural(BaseEstimator):
    """Shared code of the classifier and the regressor."""

    @abstractmethod
    def _labels(self, y: Any) -> Fact[Any]:
        """Return the public facts of the labels."""

    @abstractmethod
    def _n_outputs(self, labels: Any) -> int: ...

    def _planned_outputs(self) -> int:
        """Return the number of outputs as far as it is declared."""
        return 1

    @abstractmethod
    def _loss(self) -> nn.Module: ...

    @abstractmethod
    def _targets(self, labels: Any) -> tuple[Like, Callable[[Any, Any], tuple[Any, Any]]]: ...

    @abstractmethod
    def _publish(self, labels: Any) -> None:
        """Set the released attributes that follow from the facts of the labels."""

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
        """Plan a fit and its cost, without data.

        Parameters
        ----------
        n_features
            The number of columns.
        n_records
            The number of rows, if the estimator does not declare ``n_records``.
        """
        check_shape(n_features, n_records)
        shape = self._shape(n_features)
        budget = budget_of(self.epsilon, self.delta, self.relation, self.accountant)
        public = n_records_of(self.n_records, n_records, budget.relation)
        sampling = self._sampling(public.value or n_records)
        plan = self._plan(budget, sampling)
        # so that a pipeline or a search refuses now, and not after its charge
        self._trainer(self._fresh(shape, self._planned_outputs()), budget, sampling)
        return plan

    def epsilon_by_epoch(self) -> list[EpochCost]:
        """Return the cost of a fitted training after every epoch."""
        check_is_fitted(self, "privacy_")
        return epsilon_by_epoch(self.plan_)

    def fit(self, X: Any, y: Any, unit: Any = None) -> Self:
        """Fit to records ``X`` (one per row) with labels ``y``, which are read after the charge.

        ``unit``, the person of each record, is refused: gradients are clipped per record.
        """
        resolved = with_table_facts(self, X)
        labels = resolved._labels(y)
        table, names = note_columns(self, X, y, unit=unit, sparse=False)
        budget = with_people(
            budget_of(resolved.epsilon, resolved.delta, resolved.relation, resolved.accountant),
            has_people(table),
        )
        check_budget(budget)
        public = n_records_of(resolved.n_records, shown_rows(table), budget.relation)
        warn_if_weak(budget, public.value)
        shape = self._shape(table.n_columns)
        sampling = self._sampling(public.value)
        module = self._fresh(shape, self._n_outputs(labels.value))
        trainer = self._trainer(module, budget, sampling)
        rows = UnreadRows(table, shape, *self._targets(labels.value))
        self._train(trainer, rows, (labels, public, names))
        self.weights_ = parameters_to_vector(module.parameters()).detach().numpy().copy()
        self._publish(labels)
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
            made = network_of(self.network, shape, self.hidden, n_outputs, to_train=True)
        _check_outputs(made, shape, n_outputs)
        return made

    def _trainer(self, module: nn.Module, budget: Budget, sampling: Sampling) -> PrivateTrainer:
        rate = checks.positive("learning_rate", self.learning_rate)
        momentum = checks.real("momentum", self.momentum)
        if not 0.0 <= momentum < 1.0:
            raise ValueError(f"momentum must be in [0, 1), got {momentum!r}.")
        if not isinstance(self.verbose, bool):
            checks.count("verbose", self.verbose, least=0, remedy="pass 0, 1 or 2.")
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
        """Return the trained network as a separate torch module, ready to predict."""
        check_is_fitted(self, "weights_")
        made = self.unfilled()
        vector_to_parameters(torch.from_numpy(self.weights_.copy()), made.parameters())
        return made.eval()

    def unfilled(self) -> nn.Module:
        """Return a network of the fitted shape, with other weights."""
        shape = self._shape(self.n_features_in_)
        return network_of(self.network, shape, self.hidden, self._n_outputs(self._known()))

    @abstractmethod
    def _known(self) -> Any:
        """Return the released facts of the labels."""

    def _outputs(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the network's outputs for rows, in double precision, in batches."""
        check_is_fitted(self, "weights_")
        rows = np.asarray(rows_for_prediction(self, X), dtype=np.float64)
        module, shape = self.module().double(), self._shape(self.n_features_in_)
        with torch.no_grad():
            parts = [
                module(torch.from_numpy(rows[start : start + _BLOCK]).reshape(-1, *shape)).numpy()
                for start in range(0, len(rows), _BLOCK)
            ]
        return np.concatenate(parts)


def _check_outputs(module: nn.Module, shape: tuple[int, ...], n_outputs: int) -> None:
    """Refuse a network with another number of outputs than there are classes or targets.

    A network that cannot be run at all is refused by the trainer, which says why.
    """
    try:
        tried = copy.deepcopy(module)
        with in_mode(tried, training=False), torch.no_grad():
            found = tuple(tried(torch.zeros(2, *shape)).shape)
    except Exception:
        return
    if found != (2, n_outputs):
        raise ValueError(
            f"network returns outputs of shape {found[1:]} for a record of shape {shape}, and "
            f"{(n_outputs,)} is needed; end it with {n_outputs} outputs, the second argument of "
            "the function. Nothing was charged."
        )


Array = npt.NDArray[np.float64]


class NeuralClassifier(ClassifierMixin, Neural):
    """A neural network classifier with a differential-privacy guarantee.

    For tabular data, a linear model of `tacit.linear_model` is as good and costs
    less (docs/networks.md); a network is for images and similar data.

    Parameters
    ----------
    epsilon, delta : float
        The privacy budget.
    network : {"mlp", "linear", "cnn"} or function, default="mlp"
        The name of an architecture, or a function from the shape of a record and the number of
        outputs to a new torch module at each call; a copy of it is trained.
    hidden : sequence of int, default=(64,)
        The widths of the hidden layers of ``"mlp"``.
    image_shape : tuple or None
        Channels, height and width, if rows are images; needed by ``"cnn"``.
    classes : list, "infer" or None
        The classes, as in `tacit.linear_model.LogisticRegression`.
    n_records : int, "infer" or None
        An approximate public number of records; it is required.
    batch_size : int or None
        The average batch size; by default a sixteenth of all records, from 256 to 4096.
    n_steps : int, default=300
        The number of steps; the noise is calibrated to it.
    learning_rate, momentum : float
        Parameters of the descent; the rate falls to 0 over the last 30 % of the steps.
    clip : float or Clip, default=0.1
        The clipping norm of one record's gradient, or a clipping rule.
    average_last : float, default=0.25
        The share of steps, at the end, over which weights are averaged.
    relation : "add_remove"
        The relation for which Poisson sampling is proved.
    accountant, random_state, verbose
        As in `LogisticRegression`; ``verbose=2`` shows a live line.

    Attributes
    ----------
    weights_ : array
        All released weights of the network in one row.
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
        epsilon: float | None = None,
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

    def _labels(self, y: Any) -> ClassesFact:
        classes = classes_of(self.classes, y)
        if classes.value.size < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 classes, got one class.")
        return classes

    def _n_outputs(self, labels: npt.NDArray[Any]) -> int:
        return int(labels.size)

    def _planned_outputs(self) -> int:
        if self.classes is None or is_inferred(self.classes):
            return 2
        return self._n_outputs(classes_of(self.classes, None).value)

    def _loss(self) -> nn.Module:
        return nn.CrossEntropyLoss(reduction="none")

    def _targets(
        self, labels: npt.NDArray[Any]
    ) -> tuple[Like, Callable[[Any, Any], tuple[Any, Any]]]:
        def records(rows: Any, given: Any) -> tuple[Any, Any]:
            codes, known = codes_of(given, labels)
            return np.asarray(rows)[known], codes[known]

        return Like((), torch.int64), records

    def _publish(self, labels: ClassesFact) -> None:
        publish_classes(self, labels)

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


class NeuralRegressor(RegressorMixin, Neural):
    """A neural network regressor with a differential-privacy guarantee.

    Labels are scaled to [-1, 1] by their public range, and predictions back; the loss is squared.

    Parameters
    ----------
    label_range : tuple, "infer" or None
        The range to which labels are clipped, as in `tacit.linear_model.LinearRegression`.
    epsilon, delta, network, hidden, image_shape, n_records, batch_size, n_steps, learning_rate, \
momentum, clip, average_last, relation, accountant, random_state, verbose
        As in `NeuralClassifier`.

    Attributes
    ----------
    weights_ : array
        All released weights of the network in one row.
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
        epsilon: float | None = None,
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

    def _publish(self, labels: Fact[tuple[float, float]]) -> None:
        self.label_range_ = labels.value

    def _known(self) -> tuple[float, float]:
        low, high = self.label_range_
        return low, high

    def predict(self, X: Any) -> Array:
        """Return the predicted number of every record, within the range of the labels."""
        outputs = self._outputs(X)[:, 0]
        low, high = self.label_range_
        return np.clip(low + (outputs + 1) / 2 * (high - low), low, high)


_WEIGHTS = "A weight of a network means nothing by itself; predictions do."
_LINK = Link(_WEIGHTS, _WEIGHTS, _WEIGHTS)
_FEW: dict[str, Any] = {"n_records": 60, "n_steps": 5, "hidden": (4,)}


def _examples_of_classes() -> tuple[Example, ...]:
    rows = np.random.default_rng(5).standard_normal((60, 3))
    known = {"classes": [False, True], **_FEW}
    return (Example("binary", known, rows, rows[:, 0] > 0, (False, True)),)


def _examples_of_numbers() -> tuple[Example, ...]:
    rows = np.random.default_rng(5).standard_normal((60, 3))
    known = {"label_range": (-3.0, 3.0), **_FEW}
    return (Example("number", known, rows, rows @ [1.0, -1.0, 0.5], (-1e8, 1e9)),)


def check_network(model: Any) -> None:
    """Refuse weights that do not fit the declared network."""
    weights = model.weights_
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float32 or weights.ndim != 1:
        raise NotAModel("weights_ is not one row of single floats.")
    if not np.all(np.isfinite(weights)):
        raise NotAModel("weights_ has a value that is not finite.")
    if "label_range_" in vars(model):
        _check_range(model.label_range_)
    try:
        with torch.device("meta"):  # without memory, because a forged file may declare any size
            size = parameter_count(model.unfilled())
    except (TypeError, ValueError, RuntimeError, AttributeError) as why:
        raise NotAModel(f"its parameters are not a network's: {why}") from why
    if size != weights.size:
        raise NotAModel(f"its network has {size} weights, and weights_ {weights.size}.")


def _check_range(found: Any) -> None:
    numbers = isinstance(found, tuple) and len(found) == 2
    if not numbers or not all(type(end) in (int, float) for end in found):
        raise NotAModel("label_range_ is not two numbers.")
    if not -np.inf < found[0] < found[1] < np.inf:
        raise NotAModel("label_range_ is not finite and in order.")


NETWORKS: tuple[ModelSpec, ...] = (
    ModelSpec(
        "network",
        NeuralClassifier,
        Predicts.CLASSES,
        ("weights_", "classes_", DECLARED_CLASSES, "n_features_in_", NAMES),
        _LINK,
        _examples_of_classes,
        "neural_classifier",
        ACCURACY,
        relations=(Relation.ADD_REMOVE,),
        check=check_network,
    ),
    ModelSpec(
        "network_of_numbers",
        NeuralRegressor,
        Predicts.NUMBERS,
        ("weights_", "label_range_", "n_features_in_", NAMES),
        _LINK,
        _examples_of_numbers,
        "neural_regressor",
        R2,
        relations=(Relation.ADD_REMOVE,),
        check=check_network,
    ),
)
