import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.local.protocol import Question, Reason, Rejected, Report
from tests.local.protocol_helpers import sealed

TASK = bytes(range(16))
TOKEN = bytes(range(16, 32))
NUMBERS = st.integers(0, 2**64 - 1)
IDS = st.binary(min_size=16, max_size=16)
COORDINATES = st.floats(-(2.0**300), 2.0**300)


def question():
    return Question(TASK, 7, np.array([0.5, -2.0])).to_bytes()


def report(step_bytes=4):
    return Report(TASK, 7, TOKEN, np.array([3, -4]), step_bytes).to_bytes()


def reason_of(parse, data):
    with pytest.raises(Rejected) as caught:
        parse(data)
    return caught.value.reason


def test_question_byte_by_byte():
    expected = (
        b"tacQ"
        + b"\x01\x00"
        + TASK
        + b"\x07" + bytes(7)
        + b"\x02\x00\x00\x00"
        + bytes.fromhex("000000000000e03f" "00000000000000c0")
    )  # fmt: skip
    assert question() == sealed(expected)
    assert len(question()) == Question.size(2) == 54


@pytest.mark.parametrize(
    ("step_bytes", "steps"),
    [
        (2, "0300" "fcff"),
        (4, "03000000" "fcffffff"),
        (8, "0300000000000000" "fcffffffffffffff"),
    ],
)  # fmt: skip
def test_report_byte_by_byte(step_bytes, steps):
    expected = (
        b"tacR"
        + b"\x01\x00"
        + TASK
        + b"\x07" + bytes(7)
        + TOKEN
        + b"\x02\x00\x00\x00"
        + bytes([step_bytes])
        + bytes.fromhex(steps)
    )  # fmt: skip
    assert report(step_bytes) == sealed(expected)
    assert len(report(step_bytes)) == Report.size(2, step_bytes) == 55 + 2 * step_bytes


@given(IDS, NUMBERS, hnp.arrays(np.float64, st.integers(1, 20), elements=COORDINATES))
@settings(max_examples=100, deadline=None)
def test_questions_come_back_bit_for_bit(task, number, point):
    back = Question.from_bytes(Question(task, number, point).to_bytes())
    assert (back.task, back.number) == (task, number)
    assert back.point.dtype == np.float64
    assert back.point.tobytes() == point.tobytes()


@given(IDS, NUMBERS, IDS, st.sampled_from([2, 4, 8]), st.data())
@settings(max_examples=100, deadline=None)
def test_reports_come_back(task, number, token, step_bytes, data):
    half = 2 ** (8 * step_bytes - 1)
    values = data.draw(st.lists(st.integers(-half, half - 1), min_size=1, max_size=20))
    steps = np.array(values, dtype=np.int64)
    back = Report.from_bytes(Report(task, number, token, steps, step_bytes).to_bytes())
    assert (back.task, back.number, back.token, back.step_bytes) == (
        task,
        number,
        token,
        step_bytes,
    )
    assert back.steps.dtype == np.int64
    assert back.steps.tolist() == values


@pytest.mark.parametrize("parse", [Question.from_bytes, Report.from_bytes], ids=["Q", "R"])
@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_rejected(parse, data):
    assert reason_of(parse, data) in (Reason.MALFORMED, Reason.WRONG_VERSION)


@pytest.mark.parametrize("parse", [Question.from_bytes, Report.from_bytes], ids=["Q", "R"])
@given(st.binary(max_size=80), st.booleans())
@settings(max_examples=200, deadline=None)
def test_random_bytes_with_a_good_seal_parse_or_are_rejected(parse, tail, is_question):
    start = b"tacQ\x01\x00" if is_question else b"tacR\x01\x00"
    try:
        message = parse(sealed(start + tail))
    except Rejected:
        return
    assert message.to_bytes() == sealed(start + tail)


@pytest.mark.parametrize(
    ("parse", "data"),
    [(Question.from_bytes, question()), (Report.from_bytes, report())],
    ids=["question", "report"],
)
def test_every_flipped_bit_and_every_cut_is_rejected(parse, data):
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        wanted = Reason.WRONG_VERSION if bit // 8 in (4, 5) else Reason.MALFORMED
        assert reason_of(parse, bytes(flipped)) == wanted
    for length in range(len(data)):
        assert reason_of(parse, data[:length]) == Reason.MALFORMED
    assert reason_of(parse, data + b"\0") == Reason.MALFORMED


def test_each_kind_is_rejected_by_the_other():
    assert reason_of(Question.from_bytes, report(8)) == Reason.MALFORMED
    assert reason_of(Report.from_bytes, question() + bytes(40)) == Reason.MALFORMED


def test_a_newer_version_is_named():
    body = bytearray(question()[:-4])
    body[4] = 2
    with pytest.raises(Rejected, match=r"version 2.* speaks 1"):
        Question.from_bytes(sealed(bytes(body)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**301])
def test_points_that_could_overflow_are_refused(value):
    body = question()[:-12] + struct.pack("<d", value)
    assert reason_of(Question.from_bytes, sealed(body)) == Reason.MALFORMED
    with pytest.raises(ValueError, match="beyond"):
        Question(TASK, 7, np.array([0.0, value]))


@pytest.mark.parametrize("lie", [0, 1, 3, 2**32 - 1])
def test_a_wrong_count_of_coordinates_is_rejected(lie):
    count = struct.pack("<I", lie)
    body = question()[:-4]
    assert reason_of(Question.from_bytes, sealed(body[:30] + count + body[34:])) == "malformed"
    body = report()[:-4]
    assert reason_of(Report.from_bytes, sealed(body[:46] + count + body[50:])) == "malformed"
    body = body[:50] + b"\x03" + body[51:]
    assert reason_of(Report.from_bytes, sealed(body)) == "malformed"


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"task": b"short"}, "task"),
        ({"number": -1}, "number"),
        ({"number": 2**64}, "number"),
        ({"token": bytes(15)}, "token"),
        ({"steps": np.array([0.5])}, "steps"),
        ({"steps": np.array([], dtype=np.int64)}, "steps"),
        ({"steps": np.array([2**15])}, "fit 2 bytes"),
        ({"steps": np.array([-(2**15) - 1])}, "fit 2 bytes"),
        ({"step_bytes": 3}, "step_bytes"),
    ],
)
def test_a_report_that_cannot_travel_is_refused(changes, match):
    fields = {"task": TASK, "number": 0, "token": TOKEN, "steps": np.array([1]), "step_bytes": 2}
    with pytest.raises(ValueError, match=match):
        Report(**(fields | changes))


def test_only_bytes_are_parsed():
    with pytest.raises(TypeError, match="must be bytes"):
        Question.from_bytes("tacQ")
    assert Report.from_bytes(bytearray(report())).number == 7
