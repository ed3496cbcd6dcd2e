"""Clip and sum gradients of single records for the cost of an ordinary step."""

from tacit.deep.clipping.book_keeping import BookKeeper, Sums, added
from tacit.deep.clipping.clip import AutomaticClip, Clip, FlatClip, PerLayerClip
from tacit.deep.clipping.layers import CannotClip, without_batch_norm
from tacit.deep.clipping.mixing_check import Like, book_keeper

__all__ = [
    "AutomaticClip",
    "BookKeeper",
    "CannotClip",
    "Clip",
    "FlatClip",
    "Like",
    "PerLayerClip",
    "Sums",
    "added",
    "book_keeper",
    "without_batch_norm",
]
