from __future__ import annotations

import io
import subprocess
import zipfile
from pathlib import Path
from shutil import which

import pytest

from tacit.saving import NotAModel
from tacit.saving.container import MOST_MEMBERS, _zipped, is_member_name, pack, unpack

MEMBERS = {"model.json": b"{}", "released.coef_.npy": bytes(range(256)), "empty.txt": b""}


def test_round_trip() -> None:
    data = pack(MEMBERS)
    assert unpack(data) == MEMBERS
    assert list(unpack(data)) == list(MEMBERS)
    assert pack(unpack(data)) == data


def test_it_is_a_zip_that_says_its_checksums() -> None:
    with zipfile.ZipFile(io.BytesIO(pack(MEMBERS))) as opened:
        assert opened.testzip() is None
        assert {n: opened.read(n) for n in MEMBERS} == MEMBERS
        lines = opened.read("sha256.txt").decode().splitlines()
    assert [line.split("  ")[1] for line in lines] == list(MEMBERS)


@pytest.mark.skipif(which("sha256sum") is None, reason="sha256sum is not installed")
def test_sha256sum_agrees(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(pack(MEMBERS))) as opened:
        opened.extractall(tmp_path)
    subprocess.run(["sha256sum", "--check", "--strict", "sha256.txt"], cwd=tmp_path, check=True)


def test_every_changed_byte_is_noticed() -> None:
    data = pack(MEMBERS)
    for place in range(len(data)):
        for mask in (1, 128, 255):
            changed = bytearray(data)
            changed[place] ^= mask
            with pytest.raises(NotAModel):
                unpack(bytes(changed))


def test_every_cut_and_every_inserted_byte_is_noticed() -> None:
    data = pack(MEMBERS)
    for place in range(len(data)):
        for changed in (data[:place], data[place + 1 :], data[:place] + b"\0" + data[place:]):
            with pytest.raises(NotAModel):
                unpack(changed)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"model.json": b"{}"}, "no member sha256.txt"),
        ({"sha256.txt": b"", "model.json": b""}, "SHA-256 of model.json differs"),
        ({"../model.json": b"", "sha256.txt": b""}, "which no model has"),
        ({"model.json": b"", "sha256.txt": b"x"}, "SHA-256 of model.json differs"),
        ({f"m{i}.json": b"" for i in range(MOST_MEMBERS + 1)}, "more than 1000 members"),
    ],
)
def test_whole_zips_of_other_members_are_refused(members: dict[str, bytes], why: str) -> None:
    with pytest.raises(NotAModel, match=why):
        unpack(_zipped(members))


def test_two_members_of_one_name_are_refused() -> None:
    one = _zipped({"model.json": b"first"})
    local = one[: one.index(b"PK\x01\x02")]
    with pytest.raises(NotAModel, match=r"two members model\.json"):
        unpack(local + local)


def test_checksums_out_of_place_are_refused() -> None:
    checksums = unpack_all(pack(MEMBERS))["sha256.txt"]
    first = _zipped({"sha256.txt": checksums, **MEMBERS})
    with pytest.raises(NotAModel, match="repacked"):
        unpack(first)


def unpack_all(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


@pytest.mark.parametrize(
    "name", ["../a.json", "/a.json", "a/b.json", "a.pkl", ".json", "a..json", "a", "é.json", ""]
)
def test_names_with_folders_and_endings(name: str) -> None:
    assert not is_member_name(name)
    assert is_member_name("released.coef_.npy")


def test_the_reason_names_the_damaged_member() -> None:
    data = pack(MEMBERS)
    place = data.index(MEMBERS["released.coef_.npy"]) + 7
    changed = data[:place] + b"\xff" + data[place + 1 :]
    with pytest.raises(NotAModel, match=r"released\.coef_\.npy is damaged"):
        unpack(changed)
