from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from tacit.saving import CannotSave, NotAModel
from tacit.saving.codec import describe, from_npy, to_npy

ARRAYS = [
    np.array(3.5),
    np.zeros(0),
    np.arange(5.0),
    np.arange(6.0).reshape(2, 3),
    np.arange(6.0).reshape(2, 3).T,
    np.arange(24.0).reshape(2, 3, 4)[:, ::2],
    np.array([1, -2], dtype=np.int64),
    np.array([1, 2], dtype=">i4"),
    np.array([True, False]),
    np.array(["größe", ""]),
    np.array([b"a", b"bc"]),
    np.float32([0.1, np.inf, -0.0]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype.str}{a.shape}")
def test_round_trip_and_numpy_reads_it(array: Any) -> None:
    again = from_npy(to_npy(array), describe(array))
    theirs = np.load(io.BytesIO(to_npy(array)), allow_pickle=False)
    for other in (again, theirs):
        assert other.shape == array.shape
        assert other.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
        assert other.tolist() == array.tolist()
    if array.flags.f_contiguous:
        assert again.flags.f_contiguous  # a matrix product may round otherwise
    assert again.flags.writeable


@pytest.mark.parametrize("dtype", [object, complex, "datetime64[s]", [("a", "f8")]])
def test_other_types_are_not_stored(dtype: Any) -> None:
    with pytest.raises(CannotSave, match="cannot be stored"):
        describe(np.zeros(2, dtype=dtype))


GOOD = {"dtype": "<f8", "shape": [5], "fortran_order": False}


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [6]},
        {"shape": [10**18]},
        {"shape": [2**63, 2**63]},
        {"shape": [-5]},
        {"shape": [5.0]},
        {"shape": [True]},
        {"shape": [1] * 40},
        {"shape": "5"},
        {"dtype": "<f4"},
        {"dtype": "|O"},
        {"dtype": "f8"},
        {"dtype": ">f8"},
        {"dtype": "f8,f8"},
        {"dtype": "nonsense"},
        {"dtype": "|S0"},
        {"dtype": 7},
        {"fortran_order": 0},
        {"fortran_order": True},
        {"extra": 1},
    ],
)
def test_a_wrong_description_is_refused(change: dict[str, Any]) -> None:
    body = to_npy(np.arange(5.0))
    assert from_npy(body, GOOD).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(NotAModel):
        from_npy(body, {**GOOD, **change})


def test_a_body_of_another_size_is_refused() -> None:
    body = to_npy(np.arange(5.0))
    for changed in (body[:-1], body + b"\0", body[:60], b""):
        with pytest.raises(NotAModel):
            from_npy(changed, GOOD)


def test_a_huge_declared_shape_costs_no_memory() -> None:
    facts = {**GOOD, "shape": [10**12]}
    body = to_npy(np.zeros(0)).replace(b"(0,)", b"(1000000000000,)")
    with pytest.raises(NotAModel):
        from_npy(body, facts)
