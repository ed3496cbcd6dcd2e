"""What the rules of layers say of lengths, beside what is written down."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from tacit.deep.clipping.layer_rules import Call, Patches, Room

SETTINGS = [
    (kernel, stride, dilation, padding)
    for kernel, stride, dilation, padding in itertools.product((1, 2, 5), (1, 2, 3), (1, 2), (0, 2))
    if (kernel - 1) * dilation < 9 + 2 * padding
]


def patches_of(layer: nn.Conv2d, images: torch.Tensor) -> Patches:
    made = layer(images).detach()
    return Patches.of(layer, Call((images,), {}, made, [made]), Room())


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("kernel", "stride", "dilation", "padding"), SETTINGS)
def test_patches_are_no_longer_than_their_pixels_say(
    groups: int, kernel: int, stride: int, dilation: int, padding: int
) -> None:
    layer = nn.Conv2d(4, 2, kernel, stride, padding, dilation, groups)
    # ones are the worst: every pixel counts as often as it is met
    for images in (torch.ones(2, 4, 9, 11), torch.randn(3, 4, 9, 11)):
        patches = patches_of(layer, images)
        whole = patches.rows(slice(None)).square().sum((2, 3))
        assert torch.all(whole <= patches.most() * (1 + 1e-5))


def test_a_pixel_in_the_middle_is_counted_exactly() -> None:
    layer = nn.Conv2d(1, 1, 4, 2)
    images = torch.zeros(1, 1, 12, 12)
    images[:, :, 5, 6] = 3.0
    patches = patches_of(layer, images)
    assert float(patches.most()) == float(patches.rows(slice(None)).square().sum()) == 4 * 9.0
