"""Load CIFAR-10: small images of ten classes."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.datasets import Dataset
from tacit.datasets.base import find_file

CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
DESCRIPTION = (
    "CIFAR-10 (A. Krizhevsky, 2009): one of ten classes from 32 x 32 raw pixels of three colours, "
    "each divided by 255; the official split."
)

_SIDE = 32
_BRIGHTEST = 255.0
_COLOURS = ("red", "green", "blue")
_TRAINING = tuple(f"data_batch_{i}" for i in range(1, 6))


def load_cifar10(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load CIFAR-10 as raw pixels in [0, 1]; needs Pillow, which reads the images.

    Parameters
    ----------
    folder
        Holds the six files of ``cifar10/``; by default the environment variable ``TACIT_DATA``.

    Returns
    -------
    Dataset
        50,000 and 10,000 float32 rows of 3,072 numbers, the colours of a pixel side by side; the
        label is a number below 10, an index of `CLASSES`.
    """
    train = [read_batch(find_file(f"cifar10/{name}.zip", folder)) for name in _TRAINING]
    test_rows, test_labels = read_batch(find_file("cifar10/test_batch.zip", folder))
    return Dataset(
        np.concatenate([rows for rows, _ in train]),
        np.concatenate([labels for _, labels in train]),
        test_rows,
        test_labels,
        tuple(
            f"{colour} {row},{column}"
            for row in range(_SIDE)
            for column in range(_SIDE)
            for colour in _COLOURS
        ),
        DESCRIPTION,
    )


def read_batch(path: Path) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Read rows and labels from a zip of ``labels.u8`` and sheets of images, row by row.

    A sheet is a lossless picture of whole images side by side: image k of a sheet is in row
    k // (images in a row).
    """
    with zipfile.ZipFile(path) as batch:
        labels = np.frombuffer(batch.read("labels.u8"), dtype=np.uint8).astype(np.int64)
        sheets = sorted(name for name in batch.namelist() if name.startswith("sheet_"))
        pixels = [_images(batch.read(name), path) for name in sheets]
    rows = np.concatenate(pixels).reshape(-1, _SIDE * _SIDE * len(_COLOURS))
    if len(rows) != len(labels):
        raise ValueError(f"{path} holds {len(rows):,} images and {len(labels):,} labels.")
    return rows.astype(np.float32) / np.float32(_BRIGHTEST), labels


def _images(content: bytes, path: Path) -> npt.NDArray[np.uint8]:
    with _pillow().open(io.BytesIO(content)) as picture:
        sheet = np.asarray(picture.convert("RGB"))
    height, width, _ = sheet.shape
    if height % _SIDE or width % _SIDE:
        raise ValueError(f"{path} holds a sheet that is not made of {_SIDE} x {_SIDE} images.")
    grid = sheet.reshape(height // _SIDE, _SIDE, width // _SIDE, _SIDE, len(_COLOURS))
    return grid.swapaxes(1, 2).reshape(-1, _SIDE, _SIDE, len(_COLOURS))


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "load_cifar10 reads images with Pillow, which is not installed; pip install pillow."
        ) from None
    return Image
