"""Clip and sum gradients of single records for the cost of an ordinary step."""

from tacit.deep.clipping.clip import AutomaticClip, Clip, FlatClip, PerLayerClip
from tacit.deep.clipping.layers import CannotClip, without_batch_norm

__all__ = [
    "AutomaticClip",
    "CannotClip",
    "Clip",
    "FlatClip",
    "PerLayerClip",
    "without_batch_norm",
]
