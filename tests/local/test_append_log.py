import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.local.append_log import Journal, write_all

RECORDS = [bytes([i]) * 6 for i in range(1, 6)]


@pytest.fixture
def path(tmp_path):
    """A file with a snapshot and five records."""
    place = str(tmp_path / "journal")
    journal = Journal.create(place, b"snapshot", record_size=6, synced=False)
    for record in RECORDS:
        journal.append(record)
    journal.close()
    return place


def content(place):
    journal, snapshot, records = Journal.open(place, synced=False)
    journal.close()
    return snapshot, records


def change(place, function):
    with open(place, "rb") as file:
        data = bytearray(file.read())
    data = function(data)
    with open(place, "wb") as file:
        file.write(data)


def test_what_was_written_comes_back(path):
    assert content(path) == (b"snapshot", RECORDS)


@pytest.mark.parametrize("synced", [False, True])
def test_an_opened_file_goes_on(path, synced):
    journal, _, _ = Journal.open(path, synced=synced)
    journal.append(b"sixth!")
    journal.close()
    assert content(path) == (b"snapshot", [*RECORDS, b"sixth!"])


def test_a_record_that_was_cut_off_is_dropped_for_good(path):
    size = os.path.getsize(path)
    for kept in range(size - 1, size - 10, -1):
        os.truncate(path, kept)
        assert content(path) == (b"snapshot", RECORDS[:4])
        assert os.path.getsize(path) == size - 10
        journal, _, _ = Journal.open(path, synced=False)
        journal.append(RECORDS[4])
        journal.close()
        assert content(path) == (b"snapshot", RECORDS)


def test_a_last_record_of_the_right_length_but_wrong_bytes_is_dropped(path):
    change(path, lambda data: data[:-5] + b"\0" * 5)
    assert content(path) == (b"snapshot", RECORDS[:4])


def test_damage_before_a_good_record_is_refused(path):
    change(path, lambda data: data[:-12] + bytes([data[-12] ^ 1]) + data[-11:])
    with pytest.raises(ValueError, match="damaged at record 3 of 5"):
        content(path)


def test_records_cannot_change_places(path):
    change(path, lambda data: data[:-30] + data[-20:-10] + data[-30:-20] + data[-10:])
    with pytest.raises(ValueError, match="damaged at record 2 of 5"):
        content(path)


def test_every_flipped_bit_of_the_snapshot_is_seen(path):
    with open(path, "rb") as file:
        whole = file.read()
    for bit in range(8 * (len(whole) - 50)):
        change(path, lambda data, bit=bit: _flipped(whole, bit))
        with pytest.raises(ValueError, match="journal"):
            content(path)
    for length in range(len(whole) - 50):
        change(path, lambda data, length=length: whole[:length])
        with pytest.raises(ValueError, match="journal"):
            content(path)


def _flipped(data, bit):
    copy = bytearray(data)
    copy[bit // 8] ^= 1 << bit % 8
    return copy


@given(data=st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_other_files_are_refused(tmp_path_factory, data):
    place = tmp_path_factory.mktemp("other") / "file"
    place.write_bytes(data)
    with pytest.raises(ValueError, match="not a file"):
        content(str(place))
    assert place.read_bytes() == data


def test_only_the_holder_replaces_a_file(path):
    with pytest.raises(FileExistsError, match=r"Server\.load"):
        Journal.create(path, b"other", record_size=6, synced=False)
    assert content(path) == (b"snapshot", RECORDS)
    assert not os.path.exists(path + ".new")
    journal, _, _ = Journal.open(path, synced=False)
    newer = Journal.create(path, b"newer", record_size=6, synced=False, replaces=journal)
    journal.close()
    newer.append(b"a new1")
    newer.close()
    assert content(path) == (b"newer", [b"a new1"])


def test_a_file_has_one_holder(path):
    journal, _, _ = Journal.open(path, synced=False)
    with pytest.raises(BlockingIOError, match="used by another server"):
        Journal.open(path, synced=False)
    code = (
        f"from tacit.local.append_log import Journal\ntry: Journal.open({path!r}, synced=False)\n"
        "except BlockingIOError: raise SystemExit(17)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 17
    # The new file is held too, from before it has its name.
    newer = Journal.create(path, b"newer", record_size=6, synced=False, replaces=journal)
    journal.close()
    with pytest.raises(BlockingIOError):
        Journal.open(path, synced=False)
    newer.close()
    assert content(path) == (b"newer", [])


def test_a_crash_before_the_new_file_is_whole_leaves_the_old_one(path, monkeypatch):
    journal, _, _ = Journal.open(path, synced=False)

    def crash(*_):
        raise KeyboardInterrupt

    for name in ("write_all", "os.fsync", "os.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(f"tacit.local.append_log.{name}", crash)
            with pytest.raises(KeyboardInterrupt):
                Journal.create(path, b"newer", record_size=6, synced=False, replaces=journal)
    journal.append(b"sixth!")
    journal.close()
    assert content(path) == (b"snapshot", [*RECORDS, b"sixth!"])
    # What the crashes left beside it is no obstacle.
    journal, _, _ = Journal.open(path, synced=False)
    Journal.create(path, b"newer", record_size=6, synced=False, replaces=journal).close()
    journal.close()
    assert content(path) == (b"newer", [])


def test_the_new_file_is_on_disk_before_it_has_its_name(path, monkeypatch):
    journal, _, _ = Journal.open(path, synced=True)
    calls = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), sync(file)))
    monkeypatch.setattr(os, "replace", lambda *names: (calls.append("replace"), replace(*names)))
    newer = Journal.create(path, b"newer", record_size=6, synced=True, replaces=journal)
    journal.close()
    assert calls == ["fsync", "replace", "fsync"]
    newer.append(b"record")
    assert calls[3:] == ["fsync"]
    newer.close()


def test_records_have_one_size(path):
    journal, _, _ = Journal.open(path, synced=False)
    with pytest.raises(ValueError, match="6 bytes, got 5"):
        journal.append(b"short")
    journal.close()


def test_writes_that_stop_halfway_go_on(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:3])))
    file = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    write_all(file, b"0123456789")
    os.close(file)
    assert (tmp_path / "file").read_bytes() == b"0123456789"
