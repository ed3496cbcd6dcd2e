from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.local import Banco, GradientDescent, PosterBanco, Tail, state_from_bytes, state_to_bytes
from tacit.local.learners import BancoState, GradientDescentState, learner_from_dict
from tests.local.protocol_helpers import sealed

LEARNERS = [
    Banco(Tail(3.0, 0.25), norm=2.0, unit=5.0, averaging=1.0),
    Banco(Tail(0.1)),
    PosterBanco(Tail(1.0 / 3.0)),
    GradientDescent(0.1),
    GradientDescent(0.1, decay=0.0, radius=7.0, averaging=0.0),
]
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def identical(one, other):
    """Whether two states have the same type and the same bits."""
    return type(one) is type(other) and all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes() and np.shape(a) == np.shape(b)
        for a, b in zip(one, other, strict=True)
    )


def advanced(learner, n, seed=0):
    state = learner.init(3)
    for report in np.random.default_rng(seed).normal(size=(n, 3)) + 0.2:
        state = learner.update(state, report)
    return state


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_round_trip(learner):
    for n in (0, 1, 50):
        state = advanced(learner, n)
        data = state_to_bytes(state)
        assert isinstance(data, bytes)
        assert identical(state_from_bytes(data), state)
        assert state_to_bytes(state_from_bytes(data)) == data


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_finite_state(data):
    d = data.draw(st.integers(1, 5))
    n = data.draw(st.integers(0, 2**63 - 1))
    vectors = [data.draw(arrays(np.float64, d, elements=FLOATS)) for _ in range(3)]
    for state in (
        BancoState(n, data.draw(FLOATS), data.draw(FLOATS), *vectors),
        GradientDescentState(n, *vectors[:2]),
    ):
        assert identical(state_from_bytes(state_to_bytes(state)), state)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_resuming_equals_going_on(learner):
    reports = np.random.default_rng(1).normal(size=(60, 3)) + 0.2
    whole, stopped = learner.init(3), learner.init(3)
    for i, report in enumerate(reports):
        whole = learner.update(whole, report)
        if i % 7 == 3:
            stopped = state_from_bytes(state_to_bytes(stopped))
            described = json.loads(json.dumps(learner.to_dict()))
        else:
            described = learner.to_dict()
        stopped = learner_from_dict(described).update(stopped, report)
    assert identical(whole, stopped)


def test_what_is_read_can_be_written_to():
    # a copy of its own, not a view of the bytes
    state = state_from_bytes(state_to_bytes(advanced(LEARNERS[0], 5)))
    for vector in state[3:]:
        assert vector.flags.writeable
        assert vector.flags.owndata


@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[3]], ids=repr)
def test_every_truncation_is_refused(learner):
    data = state_to_bytes(advanced(learner, 5))
    for n in range(len(data)):
        with pytest.raises(ValueError, match=r"mark|cut off|damaged|bytes"):
            state_from_bytes(data[:n])
    with pytest.raises(ValueError, match="damaged"):
        state_from_bytes(data + b"\0")


@pytest.mark.parametrize("learner", [LEARNERS[0], LEARNERS[3]], ids=repr)
def test_every_flipped_bit_is_refused(learner):
    data = state_to_bytes(advanced(learner, 5))
    for i in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[i // 8] ^= 1 << (i % 8)
        with pytest.raises(ValueError, match=r"mark|damaged"):
            state_from_bytes(bytes(flipped))


MARK = b"tacit-state"


@pytest.mark.parametrize(
    ("header", "numbers", "reason"),
    [
        ((2, 1, 1, 0), 2, "version 2"),
        ((0, 1, 1, 0), 2, "version 0"),
        ((1, 2, 1, 0), 2, "kind 2"),
        ((1, 255, 1, 0), 2, "kind 255"),
        ((1, 1, 0, 0), 0, "wrong for 0 features"),
        ((1, 1, 2, 0), 2, "wrong for 2 features"),
        ((1, 0, 1, 0), 2, "wrong for 1 features"),
        ((1, 1, 2**32 - 1, 0), 2, "wrong for 4294967295 features"),
    ],
)
def test_sealed_nonsense_is_refused(header, numbers, reason):
    body = MARK + struct.pack("<BBIQ", *header) + struct.pack(f"<{numbers}d", *[1.0] * numbers)
    with pytest.raises(ValueError, match=reason):
        state_from_bytes(sealed(body))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(value):
    good = MARK + struct.pack("<BBIQ", 1, 1, 1, 4)
    assert state_from_bytes(sealed(good + struct.pack("<2d", 1.0, 2.0))).estimate[0] == 2.0
    with pytest.raises(ValueError, match="not finite"):
        state_from_bytes(sealed(good + struct.pack("<2d", 1.0, value)))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_foreign_bytes_are_refused_with_a_reason(data, marked, checksummed):
    data = (MARK if marked else b"") + data
    data = sealed(data) if checksummed else data
    with pytest.raises(ValueError, match=r"the state|not a tacit"):
        state_from_bytes(data)


@pytest.mark.parametrize("state", [None, (0, np.zeros(2), np.zeros(2)), {"n_reports": 0}, 3.0])
def test_only_states_are_written(state):
    with pytest.raises(TypeError, match="state"):
        state_to_bytes(state)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_learners_survive_json(learner):
    record = json.loads(json.dumps(learner.to_dict(), allow_nan=False))
    assert learner_from_dict(record) == learner
    assert type(learner_from_dict(record)) is type(learner)


@pytest.mark.parametrize("kind", [None, "sgd", "Banco"])
def test_unknown_learners_are_refused(kind):
    with pytest.raises(ValueError, match=r"unknown learner kind.*poster_banco"):
        learner_from_dict({"kind": kind, "rate": 1.0})


def test_learners_are_checked_when_read():
    record = Banco(Tail(1.0)).to_dict()
    with pytest.raises(ValueError, match="norm"):
        learner_from_dict({**record, "norm": -1.0})
    with pytest.raises(ValueError, match="variance"):
        learner_from_dict({**record, "tail": {"variance": -1.0, "reach": None}})
