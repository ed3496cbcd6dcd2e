"""Load UCI Adult: whether a person earns more than 50,000 dollars a year."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.datasets.base import (
    Dataset,
    Feature,
    Intervals,
    OneHot,
    Scaled,
    Table,
    encode,
    feature_names,
    find_file,
)

DESCRIPTION = (
    "UCI Adult (B. Becker, R. Kohavi, 1996, doi:10.24432/C5XW20, CC BY 4.0): income above 50,000 "
    "dollars from 14 attributes of the 1994 US census; the official split."
)

_COLUMNS = np.dtype(
    [
        ("age", "f8"),
        ("workclass", "U32"),
        ("fnlwgt", "f8"),
        ("education", "U32"),
        ("education-num", "f8"),
        ("marital-status", "U32"),
        ("occupation", "U32"),
        ("relationship", "U32"),
        ("race", "U32"),
        ("sex", "U32"),
        ("capital-gain", "f8"),
        ("capital-loss", "f8"),
        ("hours-per-week", "f8"),
        ("native-country", "U32"),
        ("income", "U32"),
    ]
)

# The categories of adult.names, in its order.
_CATEGORIES = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, "
    "Without-pay, Never-worked",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, "
    "9th, 7th-8th, 12th, Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, "
    "Married-spouse-absent, Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, "
    "Prof-specialty, Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, "
    "Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, "
    "Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, Honduras, "
    "Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, France, "
    "Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, Nicaragua, "
    "Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, "
    "Holand-Netherlands",
}
_ALL = tuple(OneHot(name, tuple(text.split(", "))) for name, text in _CATEGORIES.items())

# Round cut points: 5 years, 10 hours, the 1-2-5 series, 500 dollars; zero has its own interval.
# fnlwgt is a sampling weight and education-num repeats education: both are left out.
ROUND: tuple[Feature, ...] = (
    Intervals("age", tuple(map(float, range(20, 75, 5)))),
    Intervals("hours-per-week", tuple(map(float, range(10, 90, 10)))),
    Intervals("capital-gain", (1.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0, 50000.0)),
    Intervals("capital-loss", (1.0, *map(float, range(500, 3500, 500)))),
    *_ALL[:-1],
    OneHot("native-country", ("United-States",)),
)

# Every column, as most published results have it. The limits are the census codes (ages from 17
# to a top code of 90, gains to 99,999, hours to 99) or round numbers (the weight, losses).
PLAIN: tuple[Feature, ...] = (
    Scaled("age", 17.0, 90.0),
    Scaled("fnlwgt", 0.0, 2e6),
    Scaled("education-num", 1.0, 16.0),
    Scaled("capital-gain", 0.0, 99_999.0),
    Scaled("capital-loss", 0.0, 5000.0),
    Scaled("hours-per-week", 1.0, 99.0),
    *_ALL,
)


def load_adult(
    folder: str | os.PathLike[str] | None = None, schema: Sequence[Feature] = ROUND
) -> Dataset:
    """Load UCI Adult with a public schema.

    Parameters
    ----------
    folder
        Holds ``adult/adult.data.gz`` and ``adult/adult.test.gz``; by default the environment
        variable ``TACIT_DATA``.
    schema
        ``adult.ROUND`` (96 features: numbers cut into intervals at round numbers) or
        ``adult.PLAIN`` (105 features: 6 numbers scaled to [0, 1] and 99 categories), or another
        tuple of `tacit.datasets.base` features. Unknown values ("?") become zeros.

    Returns
    -------
    Dataset
        32,561 and 16,281 float64 rows; the label is whether income is above 50,000 dollars.
    """
    train = read_table(find_file("adult/adult.data.gz", folder))
    test = read_table(find_file("adult/adult.test.gz", folder))
    return Dataset(
        train_rows=encode(train, schema),
        train_labels=train["income"] == ">50K",
        test_rows=encode(test, schema),
        test_labels=test["income"] == ">50K",
        feature_names=feature_names(schema),
        description=DESCRIPTION,
    )


def read_table(path: Path) -> Table:
    """Read one file of Adult, without blanks and full stops."""
    # The test file starts with a comment and ends its labels with a full stop.
    table: Table = np.loadtxt(path, dtype=_COLUMNS, delimiter=",", comments="|")
    for name in (*_CATEGORIES, "income"):
        table[name] = np.char.strip(table[name], " .")
    return table
