"""Models without batch normalisation."""

from __future__ import annotations

import copy
from typing import Any

from torch import nn

BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_MOST_GROUPS = 32
_LEAST_CHANNELS = 4  # of a group: one value by itself would be normalised to nothing


def without_batch_norm(model: nn.Module, *, most_groups: int = _MOST_GROUPS) -> nn.Module:
    """Return a copy of a model with GroupNorm wherever it had batch normalisation.

    Batch normalisation ties every record to the others of its batch; group normalisation looks at
    one record alone. The copy keeps scales and shifts, and forgets running averages.

    Parameters
    ----------
    model
        Any module; it is left as it was.
    most_groups
        Channels are normalised in at most so many groups, as many as divide them.

    Examples
    --------
    >>> from torch import nn
    >>> from tacit.deep import without_batch_norm
    >>> without_batch_norm(nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8)))[1].num_groups
    2
    """
    if isinstance(model, BATCH_NORM):
        return _group_norm(model, most_groups)
    copied = copy.deepcopy(model)
    for module in list(copied.modules()):
        for name, child in module.named_children():
            if isinstance(child, BATCH_NORM):
                setattr(module, name, _group_norm(child, most_groups))
    return copied


def _group_norm(norm: Any, most_groups: int) -> nn.GroupNorm:
    channels = norm.num_features
    most = max(1, min(most_groups, channels // _LEAST_CHANNELS))
    groups = max(d for d in range(1, most + 1) if channels % d == 0)
    made = nn.GroupNorm(groups, norm.num_features, eps=norm.eps, affine=norm.affine)
    if norm.affine:
        made.load_state_dict({"weight": norm.weight.detach(), "bias": norm.bias.detach()})
    return made
