"""Store a snapshot and appended records in a file that survives a crash of its writer."""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass

try:
    import fcntl
except ImportError:  # without fcntl a second server is not kept out
    fcntl = None  # type: ignore[assignment]

_MARK = b"tacit-journal"
_VERSION = 1
# mark, version, bytes in a record, bytes in the snapshot
_HEADER = struct.Struct(f"<{len(_MARK)}sHIQ")
_CHECKSUM = struct.Struct("<I")
_INDEX = struct.Struct("<Q")


@dataclass
class Journal:
    """An open file of a snapshot and records, locked by one process at a time.

        mark, version, record size, snapshot size | snapshot | CRC-32
        record | CRC-32 of (its index, record)                      again and again

    Notes
    -----
    **Guarantee**

    1. `create` replaces a file atomically: after a crash either the old file or the new one
       exists, complete.
    2. A record is in the file once `append` has returned, after the process was killed and, if
       ``synced``, after a power failure.
    3. `open` drops an incomplete last record, and refuses a file with any other
       damage.

    Examples
    --------
    >>> import os, tempfile
    >>> from tacit.local.append_log import Journal
    >>> path = os.path.join(tempfile.mkdtemp(), "journal")
    >>> journal = Journal.create(path, b"snapshot", record_size=3, synced=True)
    >>> journal.append(b"one")
    >>> journal.close()
    >>> again, snapshot, records = Journal.open(path, synced=True)
    >>> again.close()
    >>> snapshot, records
    (b'snapshot', [b'one'])
    """

    path: str
    record_size: int
    n_records: int
    synced: bool
    _file: int

    @classmethod
    def create(
        cls,
        path: str,
        snapshot: bytes,
        *,
        record_size: int,
        synced: bool,
        replaces: Journal | None = None,
    ) -> Journal:
        """Write a file without records; only the holder of a file may replace it."""
        beside = path + ".new"
        if replaces is None:
            _check_free(path)
        file = os.open(beside, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            _lock(file, beside)
            if replaces is None:
                _check_free(path)
            os.ftruncate(file, 0)
            body = _HEADER.pack(_MARK, _VERSION, record_size, len(snapshot)) + snapshot
            write_all(file, body + _CHECKSUM.pack(zlib.crc32(body)))
            os.fsync(file)
            os.replace(beside, path)
            sync_folder(path)
        except BaseException:
            os.close(file)
            raise
        return cls(path, record_size, 0, synced, file)

    @classmethod
    def open(cls, path: str, *, synced: bool) -> tuple[Journal, bytes, list[bytes]]:
        """Open a file, and return it with its snapshot and its records."""
        file = os.open(path, os.O_RDWR)
        try:
            _lock(file, path)
            if not os.path.samestat(os.fstat(file), os.stat(path)):
                raise BlockingIOError(f"{path} was replaced while it was opened; try again.")
            data = _read_all(file)
            record_size, snapshot, start = _snapshot_of(data, path)
            records, end = _records_of(data, start, record_size, path)
            os.ftruncate(file, end)
            os.lseek(file, end, os.SEEK_SET)
        except BaseException:
            os.close(file)
            raise
        return cls(path, record_size, len(records), synced, file), snapshot, records

    def append(self, record: bytes) -> None:
        """Append one record. If this raises, open the file again before further use."""
        if len(record) != self.record_size:
            raise ValueError(f"a record has {self.record_size} bytes, got {len(record)}.")
        write_all(self._file, record + _seal(self.n_records, record))
        if self.synced:
            os.fsync(self._file)
        self.n_records += 1

    def close(self) -> None:
        """Close and unlock the file."""
        os.close(self._file)


def write_all(file: int, data: bytes) -> None:
    """Write all of ``data``, also if the system writes only a part at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync_folder(path: str) -> None:
    """Flush the name of a file to disk, if a folder can be opened."""
    if os.name == "nt":
        return
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_free(path: str) -> None:
    if os.path.exists(path):
        raise FileExistsError(
            f"{path} exists and records who has answered; continue with "
            "Server.load, or choose another path."
        )


def _lock(file: int, path: str) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(
            f"{path} is used by another server, and two would count people twice; stop that one."
        ) from None


def _read_all(file: int) -> bytes:
    with os.fdopen(os.dup(file), "rb") as stream:
        stream.seek(0)
        return stream.read()


def _snapshot_of(data: bytes, path: str) -> tuple[int, bytes, int]:
    if data[: len(_MARK)] != _MARK or len(data) < _HEADER.size:
        raise ValueError(f"{path} is not a file that Server.save wrote.")
    _, version, record_size, size = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise ValueError(f"{path} has version {version}, unknown to this tacit; use a newer one.")
    end = _HEADER.size + size
    if data[end : end + _CHECKSUM.size] != _CHECKSUM.pack(zlib.crc32(data[:end])):
        raise ValueError(f"{path} is truncated or damaged: its checksum differs; use a good copy.")
    return record_size, data[_HEADER.size : end], end + _CHECKSUM.size


def _records_of(data: bytes, start: int, size: int, path: str) -> tuple[list[bytes], int]:
    """Return the complete records and their end."""
    step = size + _CHECKSUM.size
    positions = range(start, len(data) - step + 1, step)
    cut = [(data[at : at + size], data[at + size : at + step]) for at in positions]
    is_good = [_seal(i, record) == seal for i, (record, seal) in enumerate(cut)]
    n_good = is_good.index(False) if False in is_good else len(cut)
    # An interrupted write is the last one; good records after a bad one mean damage.
    if any(is_good[n_good:]):
        raise ValueError(
            f"{path} is damaged at record {n_good} of {len(cut)}; use a good copy: otherwise "
            "people who have answered would be forgotten."
        )
    return [record for record, _ in cut[:n_good]], start + step * n_good


def _seal(index: int, record: bytes) -> bytes:
    # The checksum covers the index, so that records cannot be reordered.
    return _CHECKSUM.pack(zlib.crc32(record, zlib.crc32(_INDEX.pack(index))))
