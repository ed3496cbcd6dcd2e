"""Scattering beside kymatio, mirror images, and what maps of images promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.features import CosineWaves, GroupNormalization, OpponentColours, Scattering
from tacit.features.composition import SideBySide
from tacit.features.images import (
    ALIKE,
    N_PATHS,
    grid_of,
    image_shape_of,
    longest_scattering,
    mirrored,
    scattered,
)
from tacit.features.normalization import Levels

# Two images of three sizes and what Scattering2D(J=2, L=8) of kymatio 0.3.0 makes of them: the
# images are drawn again, and of its numbers every seventh is kept.
EXPECTED = np.load(Path(__file__).parent / "kymatio.npz")
SIZES = [(28, 28), (32, 32), (30, 37)]


def images(height: int, width: int) -> np.ndarray:
    """Noise, and a smooth pattern."""
    rng = np.random.default_rng(0)
    both = rng.uniform(0, 1, (2, height, width))
    both[1] = np.add.outer(np.sin(np.arange(height) / 3), np.cos(np.arange(width) / 2))
    return both[..., None]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_equal_to_kymatio(size: tuple[int, int]) -> None:
    ours = np.stack([scattered(image) for image in images(*size)])
    assert ours.shape == (2, 1, N_PATHS, np.prod(grid_of(*size)))
    theirs = EXPECTED[f"{size[0]}x{size[1]}"]
    np.testing.assert_allclose(ours.reshape(-1)[::7], theirs, atol=1e-3)
    # of numbers that are not small beside that
    assert np.abs(theirs).max() > 1.0
    assert np.median(np.abs(theirs)) > 5e-3


def test_wrong_angles_or_scales_would_show() -> None:
    """Another order of paths, as another convention of angles has it, is far off."""
    ours = np.stack([scattered(image) for image in images(28, 28)])
    turned = ours[:, :, mirrored(1)]
    assert np.abs(turned.reshape(-1)[::7] - EXPECTED["28x28"]).max() > 0.02


def test_colours_are_scattered_one_by_one() -> None:
    image = np.random.default_rng(0).uniform(0, 1, (32, 32, 3))
    whole = scattered(image)
    assert whole.shape == (3, 81, 64)
    for c in range(3):
        np.testing.assert_allclose(whole[c], scattered(image[:, :, c : c + 1])[0], atol=1e-6)


def test_a_constant_image_has_its_average_and_no_waves() -> None:
    made = scattered(np.full((28, 28, 1), 0.7))
    np.testing.assert_allclose(made[0, 0], 0.7, rtol=1e-3)
    assert np.abs(made[0, 1:]).max() < 1e-4


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (20, 24, 1)], ids=str)
def test_the_mirror_image_has_the_same_numbers_elsewhere(shape: tuple[int, int, int]) -> None:
    image = np.random.default_rng(0).uniform(0, 1, shape)
    one, other = (
        scattered(x, centered=True).reshape(-1, *grid_of(*shape[:2]))
        for x in (image, image[:, ::-1])
    )
    error = one[mirrored(shape[2])][:, :, ::-1] - other
    assert np.linalg.norm(error) < 0.01 * np.linalg.norm(other)
    plain = scattered(image).reshape(one.shape)
    assert np.linalg.norm(plain - one) > 0.05 * np.linalg.norm(one)


@pytest.mark.parametrize("centered", [False, True])
def test_no_image_is_scattered_further_than_was_said(centered: bool) -> None:
    """Images that were sought to be: waves, edges, corners, and steps uphill."""
    most = longest_scattering(28, 28, centered=centered)
    rng = np.random.default_rng(0)
    u, v = np.meshgrid(np.arange(28), np.arange(28), indexing="ij")
    hostile = [np.cos(a * u + b * v) for a in (0.0, 0.4, 1.2, 2.3) for b in (0.0, 0.6, 1.2)]
    hostile += [np.eye(784)[k].reshape(28, 28) for k in (0, 1, 29, 406)]
    hostile += [np.ones((28, 28)), np.sign(np.cos(1.2 * u))]
    sizes = []
    for x in hostile:
        length = np.linalg.norm(scattered(x[..., None], centered=centered))
        sizes.append(length / np.linalg.norm(x))
    best = hostile[int(np.argmax(sizes))]
    for _ in range(100):
        step = best + 0.2 * rng.standard_normal(best.shape) * np.abs(best).mean()
        size = np.linalg.norm(scattered(step[..., None], centered=centered)) / np.linalg.norm(step)
        if size > max(sizes):
            sizes.append(float(size))
            best = step
    assert 0.1 * most < max(sizes) <= most


ROWS = np.random.default_rng(1).uniform(0, 1, (40, 64))
PIXELS = ROWS[:, :60]


def chain() -> list[tuple[str, Any]]:
    return [
        ("scattering", Scattering((8, 8), ranges=(0.0, 1.0))),
        ("centered", Scattering((8, 8), centered=True, ranges=(0.0, 1.0))),
        ("colours", OpponentColours(row_norm=3.0)),
        ("groups", GroupNormalization(4, row_norm=9.0)),
        ("uneven groups", GroupNormalization((4, 11), lengths=[1.0, 2.0] * 4, row_norm=9.0)),
        ("waves", CosineWaves((4, 4), 3, row_norm=9.0)),
    ]


@pytest.mark.parametrize(("name", "step"), chain(), ids=[name for name, _ in chain()])
def test_a_row_is_made_of_its_image_alone_and_within_its_norm(name: str, step: Any) -> None:
    rows = PIXELS if name in ("colours", "uneven groups") else ROWS
    whole = step.fit(rows).transform(rows)
    norm = step.facts_out().row_norm
    assert np.linalg.norm(whole, axis=1).max() <= norm * (1 + 1e-12)
    assert len(step.get_feature_names_out()) == whole.shape[1]
    for at in (slice(1), slice(3, 20), slice(7, 8)):
        assert step.transform(rows[at]).tobytes() == whole[at].tobytes()
    odd = rows.copy()
    odd[2] = np.nan
    expected = whole.copy()
    expected[2] = 0.0
    assert np.array_equal(np.asarray(step.mapped(odd)), expected)


def test_waves_are_orthonormal_and_slow_ones_first() -> None:
    waves = CosineWaves((4, 4), 4).fit(ROWS).row_map(CosineWaves((4, 4), 4).fit(ROWS)._domain())
    np.testing.assert_allclose(waves.matrix.T @ waves.matrix, np.eye(16), atol=1e-12)
    assert waves.waves[:3] == [(0, 0), (0, 1), (1, 0)]
    np.testing.assert_allclose(waves.matrix[:, 0], 0.25)


def test_mirrored_waves_are_those_of_the_mirror_image() -> None:
    steps = [
        Scattering((16, 16, 3), centered=True, ranges=(0.0, 1.0)),
        GroupNormalization([16 * n for n in ALIKE]),
        CosineWaves((4, 4), 3, mirrored=True),
    ]
    picture = np.random.default_rng(0).uniform(0, 1, (2, 16, 16, 3))
    both = []
    for pictures in (picture, picture[:, :, ::-1]):
        rows = pictures.reshape(2, -1)
        for step in steps:
            rows = step.fit(rows).transform(rows)
        both.append(rows)
    assert np.abs(both[0] - both[1]).max() < 0.1 * np.abs(both[0]).max()
    # other groups, which a mirror tears apart, would show
    steps[1] = GroupNormalization(27)
    torn = []
    for pictures in (picture, picture[:, :, ::-1]):
        rows = pictures.reshape(2, -1)
        for step in steps:
            rows = step.fit(rows).transform(rows)
        torn.append(rows)
    assert np.abs(torn[0] - torn[1]).max() > 0.2 * np.abs(torn[0]).max()
    whole = CosineWaves((4, 4), 3).fit(np.zeros((1, 3 * 81 * 16)))
    assert 0.4 < both[0].shape[1] / len(whole.get_feature_names_out()) < 0.6


def test_groups_have_mean_zero_and_one_size() -> None:
    made = GroupNormalization(4, row_norm=9.0).fit(ROWS).transform(ROWS).reshape(40, 4, 16)
    np.testing.assert_allclose(made.mean(axis=2), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(made, axis=2), 0.5, rtol=1e-6)
    flat = GroupNormalization(4, row_norm=9.0).fit(ROWS).transform(np.ones((1, 64)))
    assert np.array_equal(flat, np.zeros((1, 64)))


def test_groups_have_the_lengths_that_are_said_whatever_their_sizes() -> None:
    """Alike, and one of four columns half as long as one of eleven."""
    for lengths, expected in ((None, (0.25, 0.25)), ([1.0, 2.0] * 2, (0.1, 0.4))):
        step = GroupNormalization((4, 11), lengths=lengths, row_norm=9.0)
        made = step.fit(PIXELS[:, :30]).transform(PIXELS[:, :30]).reshape(40, 2, 15)
        parts = made[:, :, :4], made[:, :, 4:]
        for part, share in zip(parts, expected, strict=True):
            np.testing.assert_allclose(part.mean(axis=2), 0.0, atol=1e-12)
            np.testing.assert_allclose((part**2).sum(axis=2), share, rtol=1e-6)


def test_levels_are_what_groups_lose() -> None:
    """Rows are theirs again, from groups made alike, means and spreads."""
    sizes = (4, 11)
    step = GroupNormalization(sizes, row_norm=9.0).fit(PIXELS[:, :15])
    alike, levels = step.transform(PIXELS[:, :15]), np.empty((40, 4))
    Levels(step._domain(), sizes)(PIXELS[:, :15], levels)
    means, spread = levels[:, :2], np.exp(levels[:, 2:]) * 0.1 - 0.01
    at = np.repeat([0, 1], sizes)
    # of norm 1 / sqrt(2) each: columns of size 1 / sqrt(2 n)
    again = means[:, at] + alike * np.sqrt(2 * np.array(sizes))[at] * spread[:, at]
    np.testing.assert_allclose(again, PIXELS[:, :15], rtol=1e-6)


def test_opponent_colours_are_a_rotation() -> None:
    images = PIXELS.reshape(40, 20, 3)
    made = OpponentColours(row_norm=9.0).fit(PIXELS).transform(PIXELS).reshape(40, 20, 3)
    np.testing.assert_allclose(np.linalg.norm(made, axis=2), np.linalg.norm(images, axis=2))
    back = np.array([[1, 1, 1], [1, 0, -2], [1, -1, 1]]) / np.sqrt([3, 2, 6])
    np.testing.assert_allclose(made @ back.T, images, atol=1e-12)
    grey = OpponentColours(row_norm=9.0).fit(PIXELS).transform(np.repeat(ROWS[:, :20], 3, axis=1))
    assert np.abs(grey.reshape(40, 20, 3)[:, :, 1:]).max() < 1e-12


def test_maps_side_by_side_count_by_their_weights() -> None:
    step = GroupNormalization(4, row_norm=9.0).fit(ROWS)
    one, out = step.row_map(step._domain()), np.empty((40, 128))
    SideBySide((one, one), (1.0, 2.0))(ROWS, out)
    np.testing.assert_allclose(out[:, 64:], 2 * out[:, :64])
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1.0)


@pytest.mark.parametrize("shape", [28, (28,), (28, 28, 1, 1), (2, 28), (28, 28, 0), ("a", 3)])
def test_no_shape_of_an_image(shape: object) -> None:
    with pytest.raises(ValueError, match=r"image_shape|pixels"):
        image_shape_of(shape)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="image_shape"):
        Scattering((28, 28)).fit(ROWS)
    for groups in (27, (3, 7), (65,)):
        with pytest.raises(ValueError, match="groups"):
            GroupNormalization(groups).fit(ROWS)
    with pytest.raises(ValueError, match="4 groups and 2 lengths"):
        GroupNormalization(4, lengths=(1.0, 2.0)).fit(ROWS)
    with pytest.raises(ValueError, match="lengths"):
        GroupNormalization(2, lengths=(1.0, -1.0)).fit(ROWS)
    with pytest.raises(ValueError, match="red, green and blue"):
        OpponentColours().fit(ROWS)
    with pytest.raises(ValueError, match="grid"):
        CosineWaves((7, 7)).fit(ROWS)
    with pytest.raises(ValueError, match="81 paths"):
        CosineWaves((4, 4), mirrored=True).fit(ROWS)
