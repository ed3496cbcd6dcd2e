"""Write files atomically, pack members into one zip, and read strict JSON.

Members are stored without compression and all other fields of the zip format are fixed, so equal
members give equal bytes. A reader therefore need not trust a zip parser with a hostile file: it
walks the members, packs them again, and accepts the file only if the bytes are equal. No size
declared in a file is ever allocated, and each model has exactly one encoding.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import stat
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class NotAModel(ValueError):
    """The file is not a model as tacit saves it; the message gives the reason.

    Raised for every readable but invalid file: damaged, truncated, repacked, foreign,
    of an unknown version, or with inconsistent values.

    Examples
    --------
    >>> from tacit.saving import NotAModel
    >>> issubclass(NotAModel, ValueError)
    True
    """


class CannotSave(ValueError):
    """The model cannot be written to a file; the message says why and what to do.

    Examples
    --------
    >>> from tacit.saving import CannotSave
    >>> issubclass(CannotSave, ValueError)
    True
    """


# Enough for the names of a million columns; reading takes a small multiple of it as memory.
MOST_TEXT_BYTES = 2**25
_MOST_DIGITS = 19


def to_json(record: dict[str, Any]) -> bytes:
    """Encode a record as readable JSON."""
    return (json.dumps(record, indent=1, allow_nan=False) + "\n").encode("ascii")


def from_json(body: bytes, name: str) -> dict[str, Any]:
    """Decode a JSON member."""
    if len(body) > MOST_TEXT_BYTES:
        raise NotAModel(f"{name} has {len(body)} bytes; at most {MOST_TEXT_BYTES} are read.")
    try:
        record = json.loads(
            body.decode("utf-8"),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_number,
            object_pairs_hook=_object,
        )
        # JSON can contain an unpaired surrogate, which cannot be printed.
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except NotAModel as why:
        raise NotAModel(f"{name}: {why}") from None
    except (ValueError, RecursionError) as why:
        raise NotAModel(f"{name} is not JSON as tacit writes it.") from why
    if not isinstance(record, dict):
        raise NotAModel(f"{name} is not a JSON object.")
    return record


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise NotAModel("a whole number has more than 19 digits.")
    return int(digits)


def _number(text: str) -> float:
    number = float(text)
    if not -float("inf") < number < float("inf"):
        raise NotAModel("a number is not finite.")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise NotAModel("a key occurs twice in one object.")
    return record


# The last member: SHA-256 of every other, in the format of `sha256sum`.
CHECKSUMS = "sha256.txt"
# Far above a model of a million columns and a hundred classes; far below the 4 GiB of a plain zip.
MOST_BYTES = 2**30
MOST_MEMBERS = 1000

_NAME = re.compile(r"[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*\.(json|npy|txt)")
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
# needed version 2.0, no flags, stored, 1980-01-01 00:00
_FIXED = struct.pack("<5H", 20, 0, 0, 0, 0x21)
_SIZES = struct.Struct("<3I2H")  # checksum, size, size, length of the name, length of extras
_HEADER = len(_LOCAL) + len(_FIXED) + _SIZES.size
_MADE_BY = struct.pack("<H", 20)
_ATTRIBUTES = struct.Struct("<3H2I")  # comment, disk, internal, external, offset
_TAIL = struct.Struct("<4H2IH")


def is_member_name(name: str) -> bool:
    """Return whether a member name is valid: words and dots, no folder, a known ending."""
    return len(name) < 200 and _NAME.fullmatch(name) is not None


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the file of these members, followed by their checksums."""
    return _zipped({**members, CHECKSUMS: _checksums(members)})


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a file after checking that `pack` reproduces every byte."""
    members = _walk(data)
    checksums = members.pop(CHECKSUMS, None)
    if checksums is None:
        raise NotAModel(f"it has no member {CHECKSUMS}, so it was not saved by tacit.")
    expected = _checksums(members)
    if checksums != expected:
        lines = set(checksums.splitlines())
        changed = [
            name
            for name, line in zip(members, expected.splitlines(), strict=True)
            if line not in lines
        ]
        raise NotAModel(
            f"the SHA-256 of {', '.join(changed) or CHECKSUMS} differs from what was saved: it "
            "was changed or damaged; use an undamaged copy."
        )
    if pack(members) != data:
        raise NotAModel(
            "it was repacked or changed outside its members; use the file as tacit wrote it."
        )
    return members


def _checksums(members: Mapping[str, bytes]) -> bytes:
    lines = [f"{hashlib.sha256(body).hexdigest()}  {name}\n" for name, body in members.items()]
    return "".join(lines).encode("ascii")


def _zipped(members: Mapping[str, bytes]) -> bytes:
    parts: list[bytes] = []
    directory: list[bytes] = []
    offset = 0
    for name, body in members.items():
        label = name.encode("ascii")
        sizes = _SIZES.pack(zlib.crc32(body), len(body), len(body), len(label), 0)
        parts += [_LOCAL, _FIXED, sizes, label, body]
        attributes = _ATTRIBUTES.pack(0, 0, 0, 0, offset)
        directory.append(_CENTRAL + _MADE_BY + _FIXED + sizes + attributes + label)
        offset += _HEADER + len(label) + len(body)
    listing = b"".join(directory)
    n = len(members)
    tail = _END + _TAIL.pack(0, 0, n, n, len(listing), offset, 0)
    return b"".join([*parts, listing, tail])


def _walk(data: bytes) -> dict[str, bytes]:
    """Return the members in the order of the file."""
    if data[: len(_LOCAL)] != _LOCAL:
        raise NotAModel(_foreign(data))
    members: dict[str, bytes] = {}
    at = 0
    while data[at : at + len(_LOCAL)] == _LOCAL:
        if len(members) >= MOST_MEMBERS:
            raise NotAModel(f"it has more than {MOST_MEMBERS} members; a model never does.")
        name, body, at = _member(data, at)
        if name in members:
            raise NotAModel(f"it has two members {name}; which one counts would be a guess.")
        members[name] = body
    return members


def _member(data: bytes, at: int) -> tuple[str, bytes, int]:
    """Return the member at an offset: its name, its bytes and the next offset."""
    start = at + _HEADER
    if start > len(data):
        raise NotAModel(_CUT_OFF)
    fixed = data[at + len(_LOCAL) : start - _SIZES.size]
    if fixed != _FIXED:
        raise NotAModel(
            "a member is compressed, encrypted, dated or flagged, which tacit never writes; use "
            "the file as tacit wrote it."
        )
    crc, size, same_size, n_name, n_extra = _SIZES.unpack_from(data, start - _SIZES.size)
    body_at = start + n_name
    if size != same_size or n_extra:
        raise NotAModel("a member declares two sizes or extra fields; it was changed or damaged.")
    if body_at + size > len(data):
        raise NotAModel(_CUT_OFF)
    name = data[start:body_at].decode("latin-1")
    if not is_member_name(name):
        raise NotAModel(f"it has a member named {name[:60]!r}, which no model has.")
    body = data[body_at : body_at + size]
    if zlib.crc32(body) != crc:
        raise NotAModel(f"the member {name} is damaged: its checksum differs; use another copy.")
    return name, body, body_at + size


_CUT_OFF = "it ends in the middle of a member: it was cut off or damaged; copy it again."


def _foreign(data: bytes) -> str:
    if not data:
        return "the file is empty."
    if data[:1] == b"\x80":
        return "it looks like a pickle, which could run code and is never opened."
    return "it is not a zip, or does not begin like one; pass a file that tacit.save wrote."


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file atomically: a reader, or a crash, sees the old file or the new one.

    A replaced file keeps its permissions and, where the system allows it, its owner and
    group; the new file is readable only to those who could read the old one. A new file has the
    default permissions.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tacit.saving.container import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(pathlib.Path(folder) / "note.txt", b"all of it")
    ...     (pathlib.Path(folder) / "note.txt").read_bytes()
    b'all of it'
    """
    target = Path(os.path.realpath(path))  # write to the target of a link; the link stays
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file in it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target.parent} is not an existing folder; make it first, or name another."
        )
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    replaced = os.stat(target) if target.exists() else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # The replacement is private to its writer until it has the permissions of the old file.
    handle = os.open(part, flags, 0o666 if replaced is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if replaced is not None:
                _take_permissions(file.fileno(), replaced)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    _remember_name(target.parent)


def _take_permissions(handle: int, of: os.stat_result) -> None:
    """Copy owner, group and permissions to an open file, as far as the system allows."""
    mode = stat.S_IMODE(of.st_mode) & 0o777
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):  # only root may change the owner
            os.fchown(handle, of.st_uid, -1)
        try:
            os.fchown(handle, -1, of.st_gid)
        except OSError:
            mode &= ~0o070  # these permissions were for another group
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def _remember_name(folder: Path) -> None:
    """Flush the folder's new entry to disk, where the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_bounded(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes."""
    try:
        mode = os.stat(path).st_mode
    except ValueError:
        raise NotAModel("the path is not one that a file can have.") from None
    # Checked before opening, because opening a pipe would wait for a writer.
    if not stat.S_ISREG(mode):
        if os.path.isdir(path):
            raise NotAModel("it is a folder; pass a file that tacit.save wrote.")
        raise NotAModel("it is not an ordinary file, such as a pipe or a device.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise NotAModel(f"it has {size} bytes; a model has at most {most}.")
        return file.read(size)
