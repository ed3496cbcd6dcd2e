"""Every kind of record source, made from rows, labels and bounds; a new one adds a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.records import MemoryRecords, RecordSource

SOURCES: dict[type[Any], Callable[..., RecordSource]] = {MemoryRecords: MemoryRecords}
