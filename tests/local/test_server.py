import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.local.learners import GradientDescent, state_to_bytes
from tacit.local.protocol import Question, Reason, Rejected, Report
from tacit.local.sanitizers import SphereNoise
from tacit.local.server import Accepted, Server
from tests.local.protocol_helpers import (
    D,
    agreement,
    cap_agreement,
    everything,
    person,
    report,
    sealed,
    sent,
    server,
)

AGREED = agreement()


def rejection(asked, data):
    """Why a report is rejected; that nothing changed is checked."""
    before = everything(asked)
    with pytest.raises(Rejected) as caught:
        asked.receive(data)
    assert everything(asked) == before
    return caught.value.reason


def filled(n, **options):
    asked = server(AGREED, **options)
    for i in range(n):
        asked.receive(report(AGREED, i))
    return asked


@pytest.mark.parametrize("agreed", [agreement(), cap_agreement()], ids=["sphere", "cap"])
def test_people_answer_one_after_the_other(agreed):
    asked = server(agreed)
    expected = asked.learner.init(D)
    for i in range(30):
        question = Question.from_bytes(asked.question())
        assert question.number == i
        assert question.point.tobytes() == expected.point.tobytes()
        answer = person(agreed, i).answer(asked.question())
        assert asked.receive(answer) == Accepted(i + 1)
        steps = Report.from_bytes(answer).steps
        expected = asked.learner.update(expected, agreed.spacing * steps)
        assert state_to_bytes(asked.state) == state_to_bytes(expected)
    assert asked.n_reports == 30
    assert asked.estimate.tobytes() == expected.estimate.tobytes()


def test_it_learns():
    asked = server(AGREED)
    # Everybody's pull is to the right, at the edge of the norm.
    one = np.zeros(D, dtype=np.int64)
    one[0] = round(1.0 / AGREED.spacing)
    for i in range(300):
        asked.receive(report(AGREED, i, steps=one))
    assert asked.estimate[0] > 0.1


def test_a_report_is_counted_once():
    asked = filled(3)
    answer = person(AGREED).answer(asked.question())
    assert not asked.has_counted(Report.from_bytes(answer).token)
    asked.receive(answer)
    assert asked.has_counted(Report.from_bytes(answer).token)
    assert rejection(asked, answer) is Reason.REPLAYED
    # The same person with new steps, to the current question.
    token = Report.from_bytes(answer).token
    assert rejection(asked, report(AGREED, 4, token=token)) is Reason.REPLAYED
    assert asked.n_reports == 4


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_stale_reports(patience):
    asked = filled(10, patience=patience)
    for number in range(10):
        data = report(AGREED, number, token=bytes(15) + b"x")
        if number < 10 - patience:
            assert rejection(asked, data) is Reason.STALE
    assert rejection(asked, report(AGREED, 11)) is Reason.NEVER_QUERIED
    assert rejection(asked, report(AGREED, 2**64 - 1)) is Reason.NEVER_QUERIED
    asked.receive(report(AGREED, 10 - patience, token=bytes(15) + b"y"))
    # That was an answer: what was the oldest question is now too old.
    data = report(AGREED, 10 - patience, token=bytes(15) + b"z")
    assert rejection(asked, data) is Reason.STALE


def test_rejected_for_what_is_wrong():
    asked, good = filled(3), report(AGREED, 3)
    wider = agreement(sanitizer=SphereNoise(4.0, n_features=D + 1))
    huge = np.zeros(D, dtype=np.int64)
    huge[1] = -(2**31)
    assert rejection(asked, b"") is Reason.MALFORMED
    assert rejection(asked, good[:-1]) is Reason.MALFORMED
    assert rejection(asked, good + b"\0") is Reason.MALFORMED
    assert rejection(asked, asked.question()) is Reason.MALFORMED
    assert rejection(asked, good[:4] + b"\x02" + good[5:]) is Reason.WRONG_VERSION
    assert rejection(asked, report(agreement(name="x"), 3)) is Reason.WRONG_TASK
    assert rejection(asked, report(wider, 3)) is Reason.WRONG_TASK
    assert rejection(asked, report(wider, 3, task=AGREED.task)) is Reason.WRONG_DIMENSION
    assert rejection(asked, report(AGREED, 3, step_bytes=8)) is Reason.MALFORMED
    assert rejection(asked, report(AGREED, 3, steps=huge)) is Reason.IMPOSSIBLE
    assert asked.receive(good) == Accepted(4)


def test_a_report_outside_the_sphere_is_impossible():
    agreed = cap_agreement()
    asked = server(agreed)
    for steps in (np.zeros(D), np.eye(D)[0] * 2**20, np.eye(D)[0] * 2**22):
        data = report(agreed, 0, steps=steps.astype(np.int64))
        assert rejection(asked, data) is Reason.IMPOSSIBLE
    asked.receive(person(agreed).answer(asked.question()))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes_change_nothing(data):
    rejection(server(AGREED), data)


@given(st.lists(st.integers(0, 8 * 75 - 1), min_size=1, max_size=5, unique=True))
@settings(max_examples=300, deadline=None)
def test_flipped_bits_change_nothing(bits):
    flipped = bytearray(report(AGREED, 0))
    for bit in bits:
        flipped[bit // 8] ^= 1 << bit % 8
    rejection(server(AGREED), bytes(flipped))


@given(st.integers(0, 70), st.binary(min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_forged_reports_are_counted_or_change_nothing(at, new):
    body = bytearray(report(AGREED, 0)[:-4])
    body[at : at + len(new)] = new
    asked = server(AGREED)
    before = everything(asked)
    try:
        asked.receive(sealed(bytes(body)))
    except Rejected:
        assert everything(asked) == before
    else:
        assert asked.n_reports == 1
        assert np.all(np.isfinite(asked.state.point))


def test_threads_count_everybody_once():
    asked = server(AGREED, patience=10**6)
    reports = [report(AGREED, 0, token=i.to_bytes(16, "little")) for i in range(200)]
    outcomes: list[Any] = []

    def send():
        outcomes.extend(sent(asked, data) for data in reports)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked.n_reports == outcomes.count(None) == 200
    assert outcomes.count(Reason.REPLAYED) == 600


def test_saved_and_loaded(tmp_path):
    asked = filled(7, patience=2)
    asked.save(tmp_path / "server")
    for i in range(7, 12):
        asked.receive(report(AGREED, i))
    asked.close()
    back = Server.load(tmp_path / "server")
    assert everything(back)[:3] == everything(filled(12))[:3]
    assert (back.agreement, back.learner, back.patience) == (AGREED, asked.learner, 2)
    assert rejection(back, report(AGREED, 3)) is Reason.REPLAYED
    assert rejection(back, report(AGREED, 11)) is Reason.REPLAYED
    # Saving again folds the journal into the snapshot, and nothing else changes.
    before, size = everything(back), os.path.getsize(tmp_path / "server")
    back.save()
    assert everything(back) == before
    assert os.path.getsize(tmp_path / "server") == size - 5 * (5 * 4 + 4)
    back.receive(report(AGREED, 12))
    back.close()
    assert everything(Server.load(tmp_path / "server"))[:3] == everything(filled(13))[:3]


def test_other_learners_are_saved_too(tmp_path):
    asked = Server(GradientDescent(rate=0.3), AGREED)
    asked.save(tmp_path / "server", synced=False)
    for i in range(5):
        asked.receive(report(AGREED, i))
    asked.close()
    back = Server.load(tmp_path / "server", synced=False)
    assert state_to_bytes(back.state) == state_to_bytes(asked.state)
    assert back.learner == asked.learner


def test_a_report_is_in_the_file_before_it_counts(tmp_path, monkeypatch):
    asked = filled(2)
    asked.save(tmp_path / "server")
    append = asked._journal.append

    def watched(record):
        assert asked.n_reports == 2
        append(record)

    monkeypatch.setattr(asked._journal, "append", watched)
    asked.receive(report(AGREED, 2))
    assert asked.n_reports == 3


def test_rejected_reports_are_not_in_the_file(tmp_path):
    asked = filled(2)
    asked.save(tmp_path / "server")
    size = os.path.getsize(tmp_path / "server")
    rejection(asked, report(AGREED, 1))
    rejection(asked, report(AGREED, 9))
    assert os.path.getsize(tmp_path / "server") == size


def test_killed_at_every_byte(tmp_path):
    """Cut the file anywhere after the snapshot: what is whole counts, what is not can be resent."""
    asked = filled(2)
    asked.save(tmp_path / "server")
    start = os.path.getsize(tmp_path / "server")
    reports = [report(AGREED, i) for i in range(2, 5)]
    for data in reports:
        asked.receive(data)
    asked.close()
    whole = (tmp_path / "server").read_bytes()
    size = (len(whole) - start) // 3
    for cut in range(start, len(whole) + 1):
        (tmp_path / "server").write_bytes(whole[:cut])
        back = Server.load(tmp_path / "server", synced=False)
        assert back.n_reports == 2 + (cut - start) // size
        for data in reports:
            assert sent(back, data) in (None, Reason.REPLAYED)
        assert everything(back)[:3] == everything(asked)[:3]
        back.close()
        back = Server.load(tmp_path / "server", synced=False)
        assert everything(back)[:3] == everything(asked)[:3]
        back.close()


def test_a_disk_that_fails_stops_the_server(tmp_path, monkeypatch):
    asked = filled(2)
    asked.save(tmp_path / "server")
    before = everything(asked)[:3]
    with monkeypatch.context() as patch:
        write = os.write

        def half(file, data):
            write(file, bytes(data[:5]))
            raise OSError("no space")

        patch.setattr("tacit.local.append_log.os.write", half)
        with pytest.raises(OSError, match="no space"):
            asked.receive(report(AGREED, 2))
    assert everything(asked)[:3] == before
    # Another record after half a record could not be told from damage.
    with pytest.raises(RuntimeError, match=r"Server\.load"):
        asked.receive(report(AGREED, 2))
    with pytest.raises(RuntimeError, match=r"Server\.load"):
        asked.save()
    asked.close()
    back = Server.load(tmp_path / "server")
    assert everything(back)[:3] == before
    back.receive(report(AGREED, 2))


def test_a_save_that_fails_at_the_end_stops_the_server(tmp_path, monkeypatch):
    # The new file is in place when the folder cannot be synced; the old one has no name any more.
    asked = filled(2)
    asked.save(tmp_path / "server")
    with monkeypatch.context() as patch:

        def fail(path):
            raise OSError("input/output error")

        patch.setattr("tacit.local.append_log.sync_folder", fail)
        with pytest.raises(OSError, match="input/output"):
            asked.save()
    with pytest.raises(RuntimeError, match=r"Server\.load"):
        asked.receive(report(AGREED, 2))
    back = Server.load(tmp_path / "server")
    assert back.n_reports == 2
    back.receive(report(AGREED, 2))
    back.close()


def test_a_closed_server_counts_nobody(tmp_path):
    asked = filled(2)
    asked.save(tmp_path / "server")
    asked.close()
    asked.close()
    with pytest.raises(RuntimeError, match="closed"):
        asked.receive(report(AGREED, 2))


def test_where_a_server_may_be_saved(tmp_path):
    asked, other = filled(2), filled(1)
    with pytest.raises(ValueError, match="no file yet"):
        asked.save()
    asked.save(tmp_path / "server")
    asked.save(tmp_path / "server")
    with pytest.raises(ValueError, match="two files"):
        asked.save(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError, match="who has answered"):
        other.save(tmp_path / "server")
    with pytest.raises(BlockingIOError, match="used by another"):
        Server.load(tmp_path / "server")
    asked.receive(report(AGREED, 2))
    asked.close()
    assert Server.load(tmp_path / "server").n_reports == 3


def test_the_file_forgets_the_order_of_people_and_their_reports_when_saved(tmp_path):
    asked, names = server(AGREED), np.random.default_rng(0).permutation(20)
    asked.save(tmp_path / "server")
    for i, name in enumerate(names):
        asked.receive(report(AGREED, i, token=int(name).to_bytes(16, "big")))
    asked.save()
    tokens = b"".join(i.to_bytes(16, "big") for i in range(20))
    assert (tmp_path / "server").read_bytes()[:-4].endswith(tokens)


def test_arguments():
    with pytest.raises(TypeError, match="agreement"):
        Server(GradientDescent(rate=1.0), SphereNoise(1.0, D))
    for patience in (-1, 1.5, True):
        with pytest.raises((TypeError, ValueError), match="patience"):
            server(AGREED, patience=patience)
    assert server(AGREED).privacy.epsilon(0.0) == 4.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_server_refuses_to_count(tmp_path):
    # Parent and child would each count a person, and write over each other in one file.
    asked = server(AGREED)
    asked.save(tmp_path / "server")
    data = report(AGREED, 0)
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            asked.receive(data)
        except RuntimeError as error:
            os._exit(0 if "forked" in str(error) else 2)
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asked.receive(data) == Accepted(1)
    asked.close()
    assert Server.load(tmp_path / "server").n_reports == 1
