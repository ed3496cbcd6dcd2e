"""diffprivlib's logistic regression, audited in an environment that has both (see audit.py).

Of rows up to norm R its noise leaves room for a Jacobian of c R where the proof needs c R^2, so at
the norm of its own documentation, 12, a claimed epsilon of 1 is more.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import numpy.typing as npt
from diffprivlib.models.logistic_regression import _logistic_regression_path

from tacit.audit import Audit, audit_fits
from tacit.privacy import Budget, Relation

Array = npt.NDArray[np.float64]
Table = tuple[Array, Array]

NORM, CLAIM = 12.0, Budget(1.0, relation=Relation.REPLACE)


def fit(table: Table, rng: np.random.Generator) -> Array:
    """Return the weights of LogisticRegression(epsilon=1, data_norm=12, fit_intercept=False).

    By the function that its ``fit`` calls, without the processes that it starts for that.
    """
    weights, _, _ = _logistic_regression_path(
        *table,
        epsilon=CLAIM.epsilon,
        data_norm=NORM,
        pos_class=1,
        Cs=[1.0],
        fit_intercept=False,
        random_state=np.random.RandomState(rng.integers(2**31)),
        check_input=False,
    )
    return np.asarray(weights[0])


def worlds() -> tuple[Table, Table]:
    """Return two tables that differ in one record: of norm 12 in one, of norm 0 in the other."""
    rows, labels = np.full((201, 1), 0.1), np.zeros(201)
    labels[-1] = 1.0
    tables = []
    for last in (0.0, NORM):
        rows[-1] = last
        tables.append((rows.copy(), labels))
    return tables[0], tables[1]


def audited(fits: int) -> Audit:
    """Return what so many fits tell: weights near 0 are far likelier with the long record."""
    return audit_fits(
        fit,
        *worlds(),
        CLAIM,
        score=lambda weights: -abs(float(weights[0]) - 0.03),
        fits=fits,
        subject="diffprivlib 0.6.6 LogisticRegression, data_norm 12",
    )


if __name__ == "__main__":
    print(json.dumps(audited(int(sys.argv[1])).to_dict()))
