"""The outermost layer: named members in one zip that is a function of what is in it.

Members are stored, not compressed, with every other field of the format fixed, so the same members
always give the same bytes. A reader therefore need not trust a zip parser with a hostile file: it
walks the members, packs them again, and takes the file only if that gives the file itself. No size
a file declares is ever allocated, and there is no second way to write the same model.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Mapping

from tacit.saving.errors import NotAModel

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
    """Return whether a member may have this name: words and dots, no folder, a known ending."""
    return len(name) < 200 and _NAME.fullmatch(name) is not None


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return the file that holds these members, and their checksums after them."""
    return _zipped({**members, CHECKSUMS: _checksums(members)})


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a file, every byte of which must be as `pack` writes it."""
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
    """Return the members in the order in which they stand in the file."""
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
    """Return the member that starts at a place: its name, its bytes, the place after it."""
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
