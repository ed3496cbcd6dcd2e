"""A table with every kind of column, its schema, and hostile text."""

import string

from hypothesis import strategies as st

from tacit.schema import (
    Boolean,
    Category,
    ClassTarget,
    Fill,
    Ignored,
    Indicator,
    Intervals,
    Number,
    Schema,
)

SCHEMA = Schema(
    columns=(
        Number("age", 0, 100),
        Number("size", 1, 1000, log=True, missing=Indicator()),
        Intervals("hours", (10, 40.5), missing=Indicator()),
        Category("town", ("Oslo", "Rome", "NA"), missing=Fill("Rome")),
        Boolean("smoker"),
        Ignored("name"),
    ),
    target=ClassTarget("ill", ("no", "yes")),
)
HEADER = ("name", "age", "size", "hours", "town", "smoker", "ill")
RECORDS = [
    ("Ann", "39", "10", "40", "Oslo", "yes", "no"),
    ("Bo", "130", "?", "", "", "maybe", "yes"),
    ("Cy", "abc", "1e9", "40.5", "Paris", "0", " no "),
    ("Di", "-5", "31.622776601683793", "9", "NA", "", "yes"),
]
ROWS = [
    [-0.11, -1 / 6, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5],
    [0.50, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0],
    [0.00, 0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -0.5],
    [-0.50, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
]
LABELS = ["no", "yes", "no", "yes"]

ODD_WORDS = (
    "? NA nan inf -Infinity 1e400 1e-400 1. .5 +3 1_0 0x1p3 1e - Oslo yes TRUE 1 1.0 1e+5 "
    "nan(1) infinity 1d3 1f --1 \u0661 \u00b2"
)
# Words that are numbers, nearly numbers, missing, declared, or anything else.
WORDS = st.one_of(
    st.sampled_from(ODD_WORDS.split()),
    st.sampled_from(["", " ", " 7", "7\t", " Oslo ", "\x00", "\x7f", "\ufeff1", "1 2"]),
    st.text(alphabet=string.digits + "+-.eE naifN_ ", max_size=8),
    st.text(max_size=8),
    st.floats().map(repr),
    st.integers().map(str),
)


def write_csv(path, records=RECORDS, header=HEADER):
    lines = [",".join(record) for record in (header, *records)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def columns(records=RECORDS, header=HEADER):
    return {name: [record[i] for record in records] for i, name in enumerate(header)}
