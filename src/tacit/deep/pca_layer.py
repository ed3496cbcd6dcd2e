"""A layer that projects records on their leading directions, found with noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tacit.preprocessing.private import PrivatePCA
from tacit.privacy import AnyAccountant, Guarantee


class PCALayer(nn.Module):
    """The leading directions of private rows, as the first layer of a network.

    Analyze Gauss: noise on the second moment of rows scaled down to ``row_norm``; whatever follows
    from it costs nothing more. The directions are fixed afterwards: a buffer, not trained.

    Parameters
    ----------
    n_components : int
        How many directions.
    epsilon, delta : float
        What the directions may cost, besides what training costs.
    row_norm : float
        Longer rows are scaled down to it, in the moment and in the layer.
    accountant
        A budget shared with the training.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from tacit.deep import PCALayer
    >>> X = np.random.default_rng(0).normal(0, 0.2, (20_000, 20))
    >>> layer = PCALayer(5, epsilon=1.0, delta=1e-6, row_norm=1.0).fit(X)
    >>> layer(torch.zeros(2, 20)).shape
    torch.Size([2, 5])
    """

    directions: Tensor

    def __init__(
        self,
        n_components: int,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        row_norm: float = 1.0,
        accountant: AnyAccountant | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__()
        self.row_norm = row_norm
        self._pca = PrivatePCA(
            n_components,
            epsilon,
            delta,
            row_norm=row_norm,
            accountant=accountant,
            random_state=random_state,
        )
        self.register_buffer("directions", torch.zeros(n_components, 0))
        self.privacy_: Guarantee | None = None

    def fit(self, X: Any) -> PCALayer:
        """Find the directions of rows; charged before they are read."""
        self._pca.fit(X)
        self.privacy_ = self._pca.privacy_
        self.directions = torch.from_numpy(self._pca.components_).float()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return the coordinates of rows along the directions, longer rows scaled down."""
        if self.directions.shape[1] == 0:
            raise RuntimeError("the layer has no directions yet; call fit(X) first.")
        rows = x.flatten(1)
        length = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        return rows * (self.row_norm / length.clamp(min=self.row_norm)) @ self.directions.T
