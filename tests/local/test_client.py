import copy
import os
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.local import (
    Absolute,
    Agreement,
    AlreadyAnswered,
    Client,
    Distance,
    HalfSphere,
    Hinge,
    Huber,
    Logistic,
    Question,
    Reason,
    Rejected,
    Report,
    SphereNoise,
    SumOfDistances,
)
from tacit.local.subgradients import clipped
from tacit.noise import recording, secure_source, seeded_source
from tests.local.protocol_helpers import D, agreement, cap_agreement, person

LOSSES = [Logistic(), Hinge(), Absolute(), Huber(1e-3), Distance(), SumOfDistances()]
AGREED = agreement()


def ask(agreed, point=None, number=3):
    point = np.zeros(agreed.n_features) if point is None else point
    return Question(agreed.task, number, np.asarray(point, dtype=float)).to_bytes()


class Spy:
    """A source that notes whether the answer was spent when it was asked for bits."""

    is_secure = True

    def __init__(self):
        self.client: Any = None
        self.seen, self.fails, self.on_draw = [], False, lambda: None
        self._source = secure_source()

    def words(self, n):
        path = self.client._path
        self.seen.append(self.client.has_answered and (path is None or os.path.exists(path)))
        self.on_draw()
        if self.fails:
            raise OSError("no bits")
        return self._source.words(n)


@pytest.mark.parametrize("agreed", [agreement(), cap_agreement()], ids=["sphere", "cap"])
def test_an_answer_is_a_possible_report(agreed):
    client = person(agreed)
    answer = client.answer(ask(agreed, number=41))
    report = Report.from_bytes(answer)
    assert len(answer) == agreed.report_size
    assert (report.task, report.number, report.token) == (agreed.task, 41, client.token)
    assert agreed.sanitizer.is_possible(report.steps)


def test_answers_are_unbiased():
    agreed = agreement(sanitizer=HalfSphere(8.0, n_features=2))
    point, features = np.array([0.7, -0.2]), np.array([0.3, 0.4])
    pull = Logistic.pull(point, features, -1.0, 0.0)
    steps = [
        Report.from_bytes(Client(features, -1.0, agreed).answer(ask(agreed, point))).steps
        for _ in range(600)
    ]
    reports = np.array(steps) * agreed.spacing
    error = (reports.mean(axis=0) - pull) / (reports.std(axis=0) / np.sqrt(600))
    assert np.abs(error).max() < 6.0
    # The test can tell a wrong sign and a wrong scale.
    wrong = (-reports.mean(axis=0) - pull) / (reports.std(axis=0) / np.sqrt(600))
    assert np.abs(wrong).max() > 6.0


def test_a_second_answer_is_refused_and_says_why():
    client = person(AGREED)
    first = client.answer(ask(AGREED))
    for question in (ask(AGREED), ask(AGREED, number=4), b"nonsense"):
        with pytest.raises(AlreadyAnswered, match="cost epsilon a second time"):
            client.answer(question)
    assert client.has_answered
    assert client.report == first


def test_threads_get_one_answer_between_them(monkeypatch):
    barrier, check = threading.Barrier(8), Agreement.check

    def check_together(self, message):
        # Nobody goes on to spend the answer before everybody has seen that it is there.
        barrier.wait(60.0)
        check(self, message)

    monkeypatch.setattr(Agreement, "check", check_together)
    for seed in range(5):
        client = person(AGREED, seed)
        got: list[bytes | None] = []

        def run(client=client, got=got):
            try:
                got.append(client.answer(ask(AGREED)))
            except AlreadyAnswered:
                got.append(None)

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 8
        assert sum(answer is not None for answer in got) == 1


@pytest.mark.parametrize("is_kept", [False, True])
def test_the_answer_is_spent_before_noise_is_drawn(tmp_path, is_kept):
    spy = Spy()
    path = tmp_path / "answered" if is_kept else None
    spy.client = client = person(AGREED, source=spy, answered_path=path)
    client.answer(ask(AGREED))
    assert spy.seen
    assert all(spy.seen)


def test_that_it_is_spent_is_on_disk_before_noise_is_drawn(tmp_path, monkeypatch):
    calls, sync, spy = [], os.fsync, Spy()
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), sync(file)))
    spy.client = client = person(AGREED, source=spy, answered_path=tmp_path / "answered")
    spy.on_draw = lambda: calls.append("draw")
    client.answer(ask(AGREED))
    # The file, its folder, the noise, and at last the answer.
    first, last = calls.index("draw"), len(calls) - calls[::-1].index("draw")
    assert calls[:first] == ["fsync", "fsync"]
    assert calls[last:] == ["fsync"]


def test_a_failure_leaves_the_answer_spent(tmp_path):
    spy = Spy()
    spy.client = client = person(AGREED, source=spy, answered_path=tmp_path / "answered")
    spy.fails = True
    with pytest.raises(OSError, match="no bits"):
        client.answer(ask(AGREED))
    spy.fails = False
    with pytest.raises(AlreadyAnswered):
        client.answer(ask(AGREED))
    again = person(AGREED, answered_path=tmp_path / "answered")
    assert again.report is None
    with pytest.raises(AlreadyAnswered):
        again.answer(ask(AGREED))


def test_a_restarted_device_still_refuses_and_can_send_again(tmp_path):
    path = tmp_path / "answered"
    first = person(AGREED, answered_path=path).answer(ask(AGREED))
    again = person(AGREED, answered_path=path)
    assert again.has_answered
    assert again.report == first == path.read_bytes()
    with pytest.raises(AlreadyAnswered):
        again.answer(ask(AGREED))


def test_two_processes_that_both_started_before_get_one_answer(tmp_path):
    one, two = (person(AGREED, answered_path=tmp_path / "answered") for _ in range(2))
    one.answer(ask(AGREED))
    with pytest.raises(AlreadyAnswered, match="says that it was answered"):
        two.answer(ask(AGREED))
    assert two.has_answered


def test_a_file_that_cannot_be_made_spends_nothing(tmp_path):
    client = person(AGREED, answered_path=tmp_path / "missing" / "answered")
    with pytest.raises(FileNotFoundError):
        client.answer(ask(AGREED))
    assert not client.has_answered
    (tmp_path / "missing").mkdir()
    client.answer(ask(AGREED))


@pytest.mark.parametrize("content", [b"", b"half a rep", bytes(1000)], ids=len)
def test_a_file_without_a_whole_answer_has_none_to_send(tmp_path, content):
    (tmp_path / "answered").write_bytes(content)
    client = person(AGREED, answered_path=tmp_path / "answered")
    assert client.has_answered
    assert client.report is None


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (b"nonsense", Reason.MALFORMED),
        (ask(agreement(name="another study")), Reason.WRONG_TASK),
        (ask(AGREED, np.zeros(D + 1)), Reason.WRONG_DIMENSION),
        (ask(AGREED)[:4] + b"\x02" + ask(AGREED)[5:], Reason.WRONG_VERSION),
    ],
    ids=["malformed", "wrong task", "wrong dimension", "wrong version"],
)
def test_a_wrong_question_is_refused_and_costs_nothing(question, reason):
    client = person(AGREED)
    with recording() as tape, pytest.raises(Rejected) as caught:
        client.answer(question)
    assert caught.value.reason is reason
    assert not tape.entries
    assert not client.has_answered
    client.answer(ask(AGREED))


@given(st.binary(max_size=200), st.lists(st.integers(0, 8 * 78 - 1), max_size=4, unique=True))
@settings(max_examples=200, deadline=None)
def test_fuzzed_questions_are_rejected(data, bits):
    client = person(AGREED)
    flipped = bytearray(ask(AGREED))
    for bit in bits:
        flipped[bit // 8] ^= 1 << bit % 8
    for question in [data, bytes(flipped)] if bits else [data]:
        with pytest.raises(Rejected):
            client.answer(question)
    assert not client.has_answered


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
@pytest.mark.parametrize("size", [0.0, 1e-310, 1e-160, 1.0, 1e300])
@pytest.mark.parametrize("largest_rate", [0.0, 1.0, 2.0**300])
def test_what_is_released_is_within_the_norm(loss, size, largest_rate):
    d = 4
    norm = max(loss.norm(d, np.hypot(1.0, 0.25)), 0.1)
    agreed = agreement(loss=loss, sanitizer=SphereNoise(1.0, d, norm), intercept=0.25)
    features = size * np.array([1.0, -1.0, 0.5])
    point = largest_rate * np.array([1.0, 1.0, -1.0, 1.0])
    for label in (-1.0, 1.0):
        client = Client(features, label, agreed)
        with recording() as tape:
            client.answer(ask(agreed, point))
        (entry,) = tape.entries
        assert np.linalg.norm(entry.bounded.value) <= norm * (1.0 + 1e-12)
        assert entry.bounded.sensitivity == 2.0 * norm
        assert entry.event == agreed.sanitizer.event


@pytest.mark.parametrize(
    ("pull", "expected"),
    [
        (lambda *_: np.full(D, 1e80), np.full(D, 1.0 / np.sqrt(D))),
        (lambda *_: np.full(D, 1e200), np.zeros(D)),
        (lambda *_: np.full(D, np.nan), np.zeros(D)),
        (lambda *_: np.full(D, np.inf), np.zeros(D)),
    ],
)
def test_a_loss_is_not_believed(monkeypatch, pull, expected):
    monkeypatch.setattr(Logistic, "pull", staticmethod(pull))
    with recording() as tape:
        person(AGREED).answer(ask(AGREED))
    assert tape.entries[0].bounded.value.ravel() == pytest.approx(expected)


def test_records_are_clipped_and_the_intercept_is_not():
    agreed = agreement(sanitizer=SphereNoise(1.0, 3, 3.0), row_norm=2.0, intercept=0.5)
    client = Client([30.0, 40.0], 1.0, agreed)
    assert client._features == pytest.approx([1.2, 1.6, 0.5])
    assert Client([0.3, 0.4], 1.0, agreed)._features.tolist() == [0.3, 0.4, 0.5]


def test_the_record_is_the_clients_own():
    features = np.full(D, 0.1)
    client = Client(features, 1.0, AGREED)
    features[:] = 7.0
    assert client._features.tolist() == [0.1] * D


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=200, deadline=None)
def test_clipping(values, norm):
    vector = np.array(values)
    short = clipped(vector, norm)
    largest = np.abs(short).max()
    assert largest <= norm * (1 + 1e-12)
    assert np.linalg.norm(short) <= norm * (1 + 1e-12)
    if np.abs(vector).max() < norm / 3:
        assert short.tobytes() == vector.tobytes()


@pytest.mark.parametrize(
    ("features", "label", "error"),
    [
        ([np.nan] * D, 1.0, ValueError),
        ([np.inf] * D, 1.0, ValueError),
        ([0.0] * (D - 1), 1.0, ValueError),
        ([[0.0] * D], 1.0, ValueError),
        (["a"] * D, 1.0, ValueError),
        ([0.0] * D, np.nan, ValueError),
        ([0.0] * D, np.inf, ValueError),
        ([0.0] * D, 0.0, ValueError),
        ([0.0] * D, 0.5, ValueError),
        ([0.0] * D, "yes", TypeError),
        ([0.0] * D, None, TypeError),
    ],
)
def test_records_that_are_refused(features, label, error):
    with pytest.raises(error):
        Client(features, label, AGREED)


def test_any_finite_label_will_do_for_a_regression():
    agreed = agreement(loss=Absolute())
    assert Client(np.zeros(D), -1e308, agreed).answer(ask(agreed))


def test_errors_and_repr_do_not_tell_the_record():
    secret = 0.123456789
    with pytest.raises(ValueError) as caught:
        Client([secret] * D, secret, AGREED)
    assert "0.1234" not in str(caught.value)
    with pytest.raises(ValueError) as caught:
        Client([secret] * (D + 1), 1.0, AGREED)
    assert "0.1234" not in str(caught.value)
    assert repr(Client([secret] * D, 1.0, AGREED)) == "Client(has_answered=False)"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_clients_cannot_be_copied(duplicate):
    with pytest.raises(TypeError, match="each copy could answer"):
        duplicate(person(AGREED))


def test_privacy():
    client = person(AGREED)
    assert client.privacy == AGREED.privacy
    assert client.privacy.epsilon(0.0) == 4.0
    seeded = person(AGREED, source=seeded_source(1)).privacy
    assert seeded.voided_by
    assert seeded.epsilon(0.0) == np.inf


def test_tokens():
    assert len({person(AGREED).token for _ in range(20)}) == 20
    token = bytes(range(16))
    client = person(AGREED, token=token)
    assert Report.from_bytes(client.answer(ask(AGREED))).token == token
    for wrong in (b"short", "x" * 16, bytearray(16)):
        with pytest.raises(ValueError, match="token"):
            person(AGREED, token=wrong)


def test_an_agreement_is_needed():
    with pytest.raises(TypeError, match="agreement"):
        Client(np.zeros(D), 1.0, SphereNoise(1.0, D))
