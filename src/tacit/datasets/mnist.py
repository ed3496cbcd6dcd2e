"""Load MNIST: small images of digits."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tacit.datasets.base import Dataset, find_file

DESCRIPTION = (
    "MNIST (Y. LeCun, C. Cortes, C. J. C. Burges, 1998): the digit from 28 x 28 raw pixels, each "
    "divided by 255; the official split."
)

_SIDE = 28
_BRIGHTEST = 255.0


def load_mnist(folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load MNIST as raw pixels in [0, 1].

    Parameters
    ----------
    folder
        Holds the four files of ``mnist/``; by default the environment variable ``TACIT_DATA``.

    Returns
    -------
    Dataset
        60,000 and 10,000 float32 rows of 784 pixels; the label is the digit.
    """
    train_rows, train_labels = _load("train", folder)
    test_rows, test_labels = _load("t10k", folder)
    names = tuple(f"pixel {row},{column}" for row in range(_SIDE) for column in range(_SIDE))
    return Dataset(train_rows, train_labels, test_rows, test_labels, names, DESCRIPTION)


def _load(
    part: str, folder: str | os.PathLike[str] | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    pixels = read_idx(find_file(f"mnist/{part}-images-idx3-ubyte.gz", folder))
    digits = read_idx(find_file(f"mnist/{part}-labels-idx1-ubyte.gz", folder))
    rows = pixels.reshape(len(pixels), -1).astype(np.float32)
    rows /= _BRIGHTEST
    return rows, digits.astype(np.int64)


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read the array in a gzipped idx file of bytes.

    The format: two zero bytes, 8 for "unsigned byte", the number of dimensions, each dimension
    as four bytes (most significant first), then the values.
    """
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} is not an idx file of unsigned bytes.")
    n_dimensions = content[3]
    shape = np.frombuffer(content, dtype=">u4", count=n_dimensions, offset=4)
    values = np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_dimensions)
    return values.reshape(shape.astype(int))
