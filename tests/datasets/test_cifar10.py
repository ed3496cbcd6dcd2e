import io
import zipfile

import numpy as np
import pytest
from cifar10 import CLASSES, load_cifar10, read_batch

from tests.datasets.helpers import needs

Image = pytest.importorskip("PIL.Image", reason="no Pillow, which reads the images")


def write_batch(path, images, labels, per_row=5):
    """Images in sheets of two rows, as the files hold them."""
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as batch:
        batch.writestr("labels.u8", labels.astype(np.uint8).tobytes())
        for k, start in enumerate(range(0, len(images), 2 * per_row)):
            some = images[start : start + 2 * per_row]
            grid = some.reshape(2, per_row, 32, 32, 3).swapaxes(1, 2)
            content = io.BytesIO()
            sheet = Image.fromarray(grid.reshape(64, 32 * per_row, 3))
            sheet.save(content, "WEBP", lossless=True, exact=True)
            batch.writestr(f"sheet_{k:03d}.webp", content.getvalue())


def drawn(n=20):
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, n)


def test_sheets_are_read_in_order(tmp_path):
    images, labels = drawn()
    write_batch(tmp_path / "a.zip", images, labels)
    rows, found = read_batch(tmp_path / "a.zip")
    assert np.array_equal(found, labels)
    np.testing.assert_allclose(rows * 255, images.reshape(20, -1), atol=1e-4)


def test_a_row_depends_on_its_own_record_only(tmp_path):
    images, labels = drawn(40)
    for name, some in (("all", slice(None)), ("some", slice(10, 30))):
        for part in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
            folder = tmp_path / name / "cifar10"
            folder.mkdir(parents=True, exist_ok=True)
            write_batch(folder / f"{part}.zip", images[some], labels[some])
    everything, few = load_cifar10(tmp_path / "all"), load_cifar10(tmp_path / "some")
    assert np.array_equal(everything.test_rows[10:30], few.test_rows)
    assert everything.train_rows.shape == (200, 3072)
    assert len(everything.feature_names) == 3072


def test_images_without_labels_are_refused(tmp_path):
    images, labels = drawn()
    write_batch(tmp_path / "a.zip", images, labels[:-1])
    with pytest.raises(ValueError, match="20 images and 19 labels"):
        read_batch(tmp_path / "a.zip")


def test_a_sheet_of_another_size_is_refused(tmp_path):
    content = io.BytesIO()
    Image.fromarray(np.zeros((64, 70, 3), np.uint8)).save(content, "WEBP", lossless=True)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as batch:
        batch.writestr("labels.u8", b"")
        batch.writestr("sheet_000.webp", content.getvalue())
    with pytest.raises(ValueError, match="32 x 32"):
        read_batch(tmp_path / "a.zip")


@pytest.mark.slow
@needs("cifar10/test_batch.zip")
def test_shapes_bounds_and_classes():
    data = load_cifar10()
    assert data.train_rows.shape == (50_000, 3_072)
    assert data.test_rows.shape == (10_000, 3_072)
    assert data.train_rows.dtype == np.float32
    assert np.bincount(data.train_labels).tolist() == [5_000] * 10
    assert np.bincount(data.test_labels).tolist() == [1_000] * 10
    assert len(CLASSES) == 10
    means = data.train_rows.reshape(-1, 3).mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(means, [0.49139968, 0.48215841, 0.44653091], atol=1e-7)
