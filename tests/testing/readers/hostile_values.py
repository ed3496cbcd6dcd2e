"""Values of a column, ordinary and hostile, by the types that libraries have for them."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

from tacit.testing.readers import MARK

NAN_WITH_PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0xFFF0_0000_0004_7114))[0]
TIME = datetime.datetime(2020, 1, 1)

TEXTS = ["Oslo", "1", "7.5", " 2 ", "NA", "?", "\ufffd", "\x1a", "yes", "1e3", str(2**53 + 1), "x"]
HOSTILE_TEXTS = {
    "mark": MARK,
    "byte-order mark": "\ufeff" + MARK,
    "byte-order mark and quote": '\ufeff"' + MARK,
    "open quote": '"' + MARK,
    "quotes": f'"{MARK}""',
    "U+FFFD": "\ufffd" + MARK,
    "substitute": "\x1a" + MARK,
    "NUL": f"{MARK}\x00{MARK}",
    **{f"line end {end!r}": f"{MARK}{end}{MARK}" for end in "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028"},
    "huge": MARK + "e300",
    "too huge": MARK + "e400",
    "subnormal": MARK + "e-320",
    "nearly zero": MARK + "e-400",
    "many digits": MARK * 7,
    "very many digits": MARK * 1000,
    "full width": "\uff11" + MARK,
    "hexadecimal": "0x" + MARK,
    "underscore": "1_" + MARK,
    "plus": "+" + MARK,
    "point": MARK + ".",
    "infinity": "inf",
    "not a number": "nan",
    "empty": "",
    "blank": " ",
    "long": MARK * 20_000,
    "null": None,
}
HOSTILE_BYTES = {
    **{kind: text if text is None else text.encode() for kind, text in HOSTILE_TEXTS.items()},
    "no UTF-8": b"\xff" + MARK.encode(),
    "cut UTF-8": MARK.encode() + b"\xe2\x82",
    "overlong UTF-8": b"\xc0\x80" + MARK.encode(),
    "surrogate": b"\xed\xa0\x80" + MARK.encode(),
}
INTS = [0, 1, 2, 7, -3, 100]
LARGE_INTS = [*INTS, 2**53, 2**53 + 1]
HOSTILE_INTS = {"null": None, "mark": 471147, "most": 2**63 - 1, "large": 2**53 + 471147}
FLOATS = [0.0, 1.0, 7.5, -3.25, 1e-5, 2.0**53]
HOSTILE_FLOATS = {
    "null": None,
    "nan": float("nan"),
    "nan with payload": NAN_WITH_PAYLOAD,
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "huge": 4.71147e300,
    "subnormal": 4.71147e-320,
    "minus zero": -0.0,
    "mark": 471147.0,
}
BOOLS = [True, False, True]
HOSTILE_BOOLS = {"null": None, "true": True}
DECIMALS = [Decimal(1), Decimal("7.5"), Decimal(-3), Decimal(2**53 + 1)]
HOSTILE_DECIMALS = {"null": None, "mark": Decimal(471147), "large": Decimal("471147e20")}
HOSTILE_OBJECTS = {
    **{f"text: {kind}": text for kind, text in HOSTILE_TEXTS.items()},
    **{f"float: {kind}": number for kind, number in HOSTILE_FLOATS.items()},
    **{f"bytes: {kind}": text for kind, text in HOSTILE_BYTES.items()},
    "int": 471147,
    "large int": 2**53 + 471147,
    "larger int": 471147 * 10**400,
    "int of many digits": 471147 * 10**5000,
    "boolean": True,
    "decimal": Decimal("4.71147"),
    "signalling decimal": Decimal("sNaN471147"),
    "huge decimal": Decimal("471147e99999"),
    "fraction": Fraction(471147, 7),
    "complex": 471147j,
    "list": [471147],
    "empty list": [],
    "dictionary": {MARK: MARK},
    "array": np.array([471147, 1]),
    "array of one": np.array([471147]),
    "date": TIME,
    "timestamp": pd.Timestamp(TIME),
    "span": datetime.timedelta(471147),
    "NumPy date": np.datetime64(471147, "ns"),
    "NumPy span": np.timedelta64(471147, "ns"),
    "NumPy seconds": np.timedelta64(471147, "s"),
    "no time": pd.NaT,
    "NA": pd.NA,
    "half": np.float16(7.5),
    "NumPy int": np.int64(471147),
    "NumPy boolean": np.bool_(True),
    "NumPy text": np.str_(MARK),
    "lone surrogate": "\ud800" + MARK,
    "object": object(),
}

BYTES = [text.encode() for text in TEXTS]
MIXED = [*TEXTS, *LARGE_INTS, *FLOATS, *BOOLS]
SMALL_FLOATS = {k: v for k, v in HOSTILE_FLOATS.items() if v is None or not 1e3 < abs(v) < 1e301}
# What a library may make of a whole column because of one value in it.
ONE_OF_EACH_TYPE = {
    kind: HOSTILE_OBJECTS[kind]
    for kind in (
        "float: null",
        "float: nan",
        "float: infinity",
        "float: mark",
        "text: mark",
        "text: null",
        "bytes: no UTF-8",
        "int",
        "large int",
        "larger int",
        "boolean",
        "decimal",
        "complex",
        "list",
        "array",
        "timestamp",
        "NumPy span",
        "no time",
        "NA",
        "half",
        "NumPy boolean",
    )
}
