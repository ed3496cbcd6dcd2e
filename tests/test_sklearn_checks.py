"""scikit-learn's own conformance checks, for every estimator.

Estimators are given ``"infer"`` where a check cannot declare a public fact, a large epsilon so
that checks about fit quality are about the code and not about noise, and a seed.
"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.privacy import Relation
from tacit.registry import MODELS
from tests.declared import made

KNOWN: dict[str, Any] = {
    "epsilon": 300.0,
    "random_state": 0,
    "classes": "infer",
    "label_range": "infer",
    "bounds": (-20.0, 20.0),
}
CENTRAL: dict[str, Any] = {"delta": 1e-3, "row_norm": 20.0, "max_weight": 5.0}
LOCAL: dict[str, Any] = {"row_norm": 4.0}

ESTIMATORS = [
    made(spec, **KNOWN, **(CENTRAL if Relation.ADD_REMOVE in spec.relations else LOCAL))
    for spec in MODELS
]
# One of each family, and, slow, the others, which share its code.
QUICK = ("LogisticRegression", "LinearRegression", "Mean", "LocalLogisticRegression")
FIRST = [estimator for estimator in ESTIMATORS if type(estimator).__name__ in QUICK]
OTHERS = [estimator for estimator in ESTIMATORS if type(estimator).__name__ not in QUICK]


# What tests/estimators/test_sample_weights.py asks instead: the same without noise, and with the
# same noise where a weight is 0.
_REPEATED = "a weight of 3 is one record's, with its noise; three records are three people's"
WEIGHTED = {
    "check_sample_weight_equivalence_on_dense_data": _REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": _REPEATED,
    "check_all_zero_sample_weights_error": "an error would tell that all weights are 0",
}


def expected_failures(estimator: Any) -> dict[str, str]:
    return WEIGHTED if hasattr(estimator, "max_weight") else {}


@parametrize_with_checks(FIRST, expected_failed_checks=expected_failures)
def test_sklearn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_others_are_sklearn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)
