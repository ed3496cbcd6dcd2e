from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.erm import L2Ball
from tacit.privacy import Composed, Gaussian, PureEpsilon, Relation
from tacit.saving import CannotSave, NotAModel
from tacit.saving.codec import Reader, Writer

VALUES: list[Any] = [
    None,
    True,
    1,
    1.0,
    -0.0,
    5e-324,
    math.inf,
    -math.inf,
    "größe",
    [1, (2.0, "x"), [None]],
    (),
    {"a": (1, 2)},
    Relation.REPLACE,
    L2Ball(3.0),
    Composed((Gaussian(2.0), PureEpsilon(1.0))),
    {1: 2.0, "a": 3.0},
    {False: 1, True: 8},
]


def round_trip(value: Any) -> Any:
    writer = Writer()
    stored = json.loads(json.dumps(writer.write(value, "here"), allow_nan=False))
    reader = Reader(writer.members)
    again = reader.read(stored, "here")
    assert reader.used == list(writer.members)
    return again


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_round_trip(value: Any) -> None:
    again = round_trip(value)
    assert again == value
    assert type(again) is type(value)
    assert str(again) == str(value)


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        (np.float64(0.1), 0.1),
        (np.float32(0.5), 0.5),
        (np.int8(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (range(3), [0, 1, 2]),
    ],
)
def test_numpy_numbers_become_numbers(value: Any, becomes: Any) -> None:
    assert round_trip(value) == becomes
    assert type(round_trip(value)) is type(becomes)


@pytest.mark.parametrize(
    "array",
    [np.arange(3.0), np.array(["a", "bc"]), pd.Index([1, 2]), np.array(["a", 1], dtype=object)],
    ids=["floats", "words", "pandas", "objects"],
)
def test_arrays_stand_in_members_of_their_own(array: Any) -> None:
    again = round_trip({"inner": [array]})["inner"][0]
    assert again.dtype == np.asarray(array).dtype
    assert again.tolist() == list(array)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        2**63,
        -(2**63),
        {(1,): 2},
        {1, 2},
        b"bytes",
        object(),
        np.array([object()]),
        np.array([[1, None]], dtype=object),
        np.array([1j]),
        lambda: None,
        {"../x": np.arange(3)},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_file_cannot_hold(value: Any) -> None:
    with pytest.raises(CannotSave, match="here"):
        Writer().write(value, "here")


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"float": "nan"},
        {"float": 1},
        {"float": ["inf"]},
        {"tuple": 1},
        {"tuple": [1], "list": []},
        {"map": []},
        {"relation": "sideways"},
        {"relation": {}},
        {"relation": []},
        {"event": None},
        {"event": {"kind": "gaussian", "version": 1}},
        {"event": {"kind": "gaussian", "version": 1, "noise_multiplier": 1}},
        {"event": {"kind": [], "version": 1}},
        {"event": {"kind": "gaussian", "version": 1, "noise_multiplier": 2.0, "relation": "no"}},
        {"part": "l2_ball", "fields": []},
        {"part": "l2_ball", "fields": {"bound": {"float": "inf"}}},
        {"array": {"dtype": "<f8", "shape": [1], "fortran_order": False}},
        {"objects": [[1]]},
        {"objects": "abc"},
        {"pickle": "gASVAAAA"},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_reader_refuses(stored: Any) -> None:
    with pytest.raises(NotAModel):
        Reader({}).read(stored, "here")
