"""Recognise the format of a file by its first bytes, whatever its name."""

from __future__ import annotations

import os
from pathlib import Path

PACKED = "a file packed by gzip"
UTF16 = "text in UTF-16"
_MAGIC = {
    b"PK\x03\x04": "an Excel workbook (.xlsx) or another zip file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Excel workbook of the old format (.xls)",
    b"$FL2": "an SPSS file (.sav)",
    b"$FL3": "an SPSS file (.zsav)",
    b"<stata_dta>": "a Stata file (.dta)",
    b"HEADER RECORD*******LIBRARY": "a SAS transport file (.xpt)",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\x1f\x8b": PACKED,
    b"\xff\xfe": UTF16,
    b"\xfe\xff": UTF16,
}
# A SAS data set begins with 12 zeros, then with this.
_SAS = b"\xc2\xea\x81\x60"
_LONGEST = 32


def format_of(path: str | os.PathLike[str]) -> str | None:
    r"""Return what a file is by its first bytes; None for text, and for anything else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tacit.io.file_formats import format_of
    >>> path = pathlib.Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = path.write_bytes(b"PK\x03\x04...")
    >>> format_of(path)
    'an Excel workbook (.xlsx) or another zip file'
    """
    with Path(path).open("rb") as file:
        start = file.read(_LONGEST)
    if start[12:16] == _SAS:
        return "a SAS data set (.sas7bdat)"
    return next((what for magic, what in _MAGIC.items() if start.startswith(magic)), None)
