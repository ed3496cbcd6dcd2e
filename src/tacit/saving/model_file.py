"""A model in one file: written whole, and loaded only if every byte is as it was saved."""

from __future__ import annotations

import os
from typing import Any

from tacit.saving.container import MOST_BYTES, pack, unpack
from tacit.saving.document import Stored, members_of, stored_in
from tacit.saving.errors import CannotSave, NotAModel
from tacit.saving.files import read_bounded, write_whole

_MOST_REASON = 400


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that `load` reads.

    The file is a zip of JSON and arrays, without pickle. It holds the model's class, parameters
    and plan, which are public, the attributes its fit released, and the certificate of its
    guarantee. It does not hold the accountant, the seed, or anything else the object carries.
    Written whole or not at all: an interrupted call leaves the old file, or none.

    Parameters
    ----------
    model
        A fitted estimator of `tacit.linear_model` or `tacit.location`, a `TableModel`, or a
        Pipeline of a `SchemaEncoder` and such an estimator, which is loaded as a `tacit.Pipeline`.
    path
        Where to write; a file of that name is replaced.

    Raises
    ------
    CannotSave
        If the model, or one of its parameters, is not one that a file can hold.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from tacit.linear_model import LogisticRegression
    >>> from tacit.saving import load, save
    >>> X = np.random.default_rng(0).standard_normal((5000, 3))
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, row_norm=2.0).fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, pathlib.Path(folder) / "model.tacit")
    ...     again = load(pathlib.Path(folder) / "model.tacit")
    >>> bool(np.all(again.predict_proba(X) == model.predict_proba(X)))
    True
    """
    data = pack(members_of(model))
    if len(data) > MOST_BYTES:
        raise CannotSave(f"the model has {len(data)} bytes; at most {MOST_BYTES} can be saved.")
    try:
        load_bytes(data)
    except NotAModel as why:
        raise CannotSave(f"the model could not be read back: {why}") from why
    write_whole(path, data)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the model that `save` wrote, predicting bit for bit the same.

    Runs no code from the file. The guarantee is computed anew from the certificate's event.
    Checksums find damage and careless edits; they are no signature, and somebody who means to
    forge a file can. Load what comes from somebody you trust.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    NotAModel
        If the file is not, byte for byte, a model as some tacit saved it; the message says why.
    OSError
        If the file is not there or cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.saving import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "notes.txt"
    ...     _ = path.write_text("milk, bread")
    ...     load(path)
    Traceback (most recent call last):
    ...
    tacit.saving.errors.NotAModel: notes.txt is not a model that tacit can load: it is not a zip...
    """
    return read_stored(path)[0].model


def read_stored(path: str | os.PathLike[str]) -> tuple[Stored, bytes]:
    """Return what a file holds, and its bytes."""
    try:
        data = read_bounded(path)
        return load_bytes(data), data
    except NotAModel as why:
        name = _printable(os.path.basename(os.fsdecode(path)))
        raise NotAModel(f"{name} is not a model that tacit can load: {why}") from why


def load_bytes(data: bytes) -> Stored:
    """Return what a file of these bytes holds."""
    try:
        return stored_in(unpack(data))
    except NotAModel as why:
        raise NotAModel(_printable(str(why))) from why
    except RecursionError:
        raise NotAModel("its values are nested too deeply; a model's never are.") from None


def _printable(text: str) -> str:
    """Return a text that cannot steer a terminal, cut where nobody would read on."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:_MOST_REASON])
    return shown if len(text) <= _MOST_REASON else shown + "..."
