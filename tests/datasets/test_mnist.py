import gzip

import numpy as np
import pytest

from tacit.datasets import load_mnist
from tacit.datasets.mnist import read_idx
from tests.datasets.helpers import needs


def idx(path, array):
    dimensions = b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    path.write_bytes(gzip.compress(b"\0\0\x08" + bytes([array.ndim]) + dimensions + bytes(array)))


def write_mnist(folder, pixels, digits):
    (folder / "mnist").mkdir()
    for part in ("train", "t10k"):
        idx(folder / "mnist" / f"{part}-images-idx3-ubyte.gz", pixels)
        idx(folder / "mnist" / f"{part}-labels-idx1-ubyte.gz", digits)


def test_idx_files_are_read(tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    idx(tmp_path / "a.gz", array)
    assert np.array_equal(read_idx(tmp_path / "a.gz"), array)


def test_another_format_is_refused(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\0\0\x0d\x01"))
    with pytest.raises(ValueError, match="idx"):
        read_idx(tmp_path / "a.gz")


def test_a_row_depends_on_its_own_record_only(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
    digits = np.arange(6, dtype=np.uint8)
    for name, some in (("all", slice(None)), ("some", slice(1, 4))):
        (tmp_path / name).mkdir()
        write_mnist(tmp_path / name, pixels[some], digits[some])
    everything, part = load_mnist(tmp_path / "all"), load_mnist(tmp_path / "some")
    assert np.array_equal(everything.train_rows[1:4], part.train_rows)
    assert np.allclose(everything.train_rows * 255, pixels.reshape(6, -1))
    assert part.train_labels.tolist() == [1, 2, 3]


@needs("mnist/train-images-idx3-ubyte.gz")
def test_shapes_bounds_and_classes():
    data = load_mnist()
    assert data.train_rows.shape == (60_000, 784)
    assert data.test_rows.shape == (10_000, 784)
    assert len(data.feature_names) == 784
    for rows in (data.train_rows, data.test_rows):
        assert rows.dtype == np.float32
        assert rows.min() == 0.0
        assert rows.max() == 1.0
    # The well-known counts of the digits 0 to 9.
    assert np.bincount(data.train_labels).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    assert np.bincount(data.test_labels).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip
