"""Train networks with a differential-privacy guarantee; needs torch."""

try:
    import torch as _torch  # noqa: F401
except ImportError as _why:
    raise ImportError(
        "tacit.deep needs torch, which is not installed; install it with pip install "
        "'tacit[deep]' (docs/networks.md says how to get the smaller build without CUDA)."
    ) from _why

from tacit.deep.callbacks import Moment, Progress, PublicEvaluation
from tacit.deep.checkpoint import CheckpointError
from tacit.deep.clipping import (
    AutomaticClip,
    CannotClip,
    Clip,
    FlatClip,
    PerLayerClip,
    without_batch_norm,
)
from tacit.deep.clipping.clip import AdaptiveClip
from tacit.deep.networks import PCALayer
from tacit.deep.neural_network import NeuralClassifier, NeuralRegressor
from tacit.deep.optimizer_step import decayed_late
from tacit.deep.ordered_trainer import OrderedTrainer
from tacit.deep.records import PublicData
from tacit.deep.trainer import PrivateTrainer
from tacit.queries.clipped_sum import BandedNoise, TreeNoise

__all__ = [
    "AdaptiveClip",
    "AutomaticClip",
    "BandedNoise",
    "CannotClip",
    "CheckpointError",
    "Clip",
    "FlatClip",
    "Moment",
    "NeuralClassifier",
    "NeuralRegressor",
    "OrderedTrainer",
    "PCALayer",
    "PerLayerClip",
    "PrivateTrainer",
    "Progress",
    "PublicData",
    "PublicEvaluation",
    "TreeNoise",
    "decayed_late",
    "without_batch_norm",
]
