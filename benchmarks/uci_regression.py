"""Load ten linear regressions of the UCI repository, as Wang (2018) prepares them."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.datasets.base import Dataset, find_file

NAMES = (
    "airfoil",
    "bike",
    "concrete",
    "elevators",
    "energy",
    "housing",
    "kin40k",
    "pol",
    "pumadyn32nm",
    "wine",
)
N_FOLDS = 10
DELTA = 1e-6  # the delta of every published figure
ROW_NORM = 1.0
LABEL_RANGE = (-1.0, 1.0)

Array = npt.NDArray[np.float64]


def load_uci_regression(
    name: str, folder: str | os.PathLike[str] | None = None, *, fold: int = 0, seed: int = 0
) -> Dataset:
    """Load one of ten regression tables, prepared as for the published figures.

    Labels are centred and divided by their greatest absolute value; columns are standardised; every
    row is scaled to norm 1; there is no intercept. A tenth of the records is for the test.

    Parameters
    ----------
    name
        One of ``uci_regression.NAMES``.
    folder
        Holds ``uci_regression/``; by default the environment variable ``TACIT_DATA``.
    fold
        The tenth of the records for the test, from 0 to 9.
    seed
        The seed of the permutation that is cut into tenths; the paper's own is not known.

    Returns
    -------
    Dataset
        float64 rows of norm 1 and labels in [-1, 1].

    Notes
    -----
    **Assumes** that means and deviations of columns and the greatest label are public, as the
    paper does for all methods. They are computed from the table, test records included: a row
    here depends on the other records, and a guarantee holds only if these statistics are public.
    """
    if name not in NAMES:
        raise ValueError(f"there is no table {name!r}; choose from {', '.join(NAMES)}.")
    if not 0 <= fold < N_FOLDS:
        raise ValueError(f"fold must be one of 0 to {N_FOLDS - 1}, got {fold!r}.")
    with np.load(find_file(f"uci_regression/{name}.npz", folder)) as file:
        rows, labels = prepared(file["X"], file["y"])
    order = np.random.default_rng(seed).permutation(len(rows))
    test = np.array_split(order, N_FOLDS)[fold]
    train = np.setdiff1d(order, test)
    return Dataset(
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        feature_names=tuple(f"x{i}" for i in range(rows.shape[1])),
        description=(
            f"{name} of the ten UCI regressions in Y.-X. Wang, Revisiting differentially private "
            f"linear regression, UAI 2018 (CC BY 4.0); fold {fold} of {N_FOLDS}, seed {seed}."
        ),
    )


def prepared(rows: Array, labels: Array) -> tuple[Array, Array]:
    """Prepare rows and labels as in the paper.

        x <- (x - mean) / std by column, then x / ||x|| by row;   y <- y / max |y|

    Examples
    --------
    >>> import numpy as np
    >>> from uci_regression import prepared
    >>> prepared(np.array([[1.0, 5.0], [3.0, 1.0]]), np.array([-2.0, 1.0]))[1]
    array([-1. ,  0.5])
    """
    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    norms = np.linalg.norm(standard, axis=1, keepdims=True)
    # A record at the mean of every column has no direction, so it stays zero.
    unit = np.divide(standard, norms, out=np.zeros_like(standard), where=norms > 0)
    return unit, labels / np.abs(labels).max()


@dataclass(frozen=True)
class Published:
    """A figure of the paper: the mean squared test error, averaged over ten folds."""

    name: str
    epsilon: float
    method: str
    error: float
    sd_over_folds: float


def read_published(folder: str | os.PathLike[str] | None = None) -> tuple[Published, ...]:
    """Read the paper's own errors: trivial, non-private, SSP, ObjPert, AdaOPS and AdaSSP."""
    with find_file("uci_regression/published.csv", folder).open(newline="") as file:
        return tuple(
            Published(
                name=line["set"],
                epsilon=float(line["epsilon"]),
                method=line["method"],
                error=float(line["mse"]),
                sd_over_folds=float(line["sd_over_folds"]),
            )
            for line in csv.DictReader(file)
        )
