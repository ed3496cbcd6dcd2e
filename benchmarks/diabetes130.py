"""Load Diabetes 130-US hospitals: whether a patient is readmitted within 30 days."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.datasets.base import (
    Dataset,
    Feature,
    Intervals,
    OneHot,
    Table,
    encode,
    feature_names,
    find_file,
)

DESCRIPTION = (
    "Diabetes 130-US hospitals, 1999-2008 (B. Strack et al., 2014, doi:10.24432/C5230J, CC BY "
    "4.0): readmission within 30 days from an encounter of a diabetic patient. The unit is the "
    "patient, who can have several encounters; split 80 to 20 by a fixed permutation of patients, "
    "so that nobody is on both sides."
)

_PATIENT = "patient_nbr"
_LABEL = "readmitted"
_SOON = "<30"

# IDs_mapping.csv, in groups; missing, unmapped and newborn codes become zeros.
_DISCHARGE = {
    "home": (1,),
    "home care": (6, 8),
    "hospital": (2, 5, 9, 15, 16, 17, 27, 28, 29, 30),
    "nursing": (3, 4, 24),
    "rehabilitation": (22, 23),
    "left": (7,),
    "hospice": (13, 14),
    "died": (11, 19, 20, 21),
}
_SOURCE = {
    "referral": (1, 2, 3),
    "transfer": (4, 5, 6, 10, 18, 22, 25, 26),
    "emergency": (7,),
}
# Strack et al., Table 2: the primary diagnosis by its ICD-9 code; other codes are "other".
_DIAGNOSES = {
    "diabetes": ((250, 250),),
    "circulatory": ((390, 459), (785, 785)),
    "respiratory": ((460, 519), (786, 786)),
    "digestive": ((520, 579), (787, 787)),
    "injury": ((800, 999),),
    "musculoskeletal": ((710, 739),),
    "genitourinary": ((580, 629), (788, 788)),
    "neoplasms": ((140, 239),),
}
_OTHER = "other"
_DIAGNOSIS = ("diag_1", "diag_2", "diag_3")

# Every column sets at most one feature to 1. Round cut points, set without the data; a stay has 1
# to 14 days (Strack et al.). Left out: weight, payer_code and medical_specialty, half or more of
# which are missing by the paper; 21 rarer drugs, which diabetesMed and change summarise.
SCHEMA: tuple[Feature, ...] = (
    OneHot("race", ("Caucasian", "AfricanAmerican", "Hispanic", "Asian", "Other")),
    OneHot("gender", ("Female", "Male")),
    OneHot("age", tuple(f"[{low}-{low + 10})" for low in range(0, 100, 10))),
    OneHot("admission_type_id", ("1", "2", "3", "7")),
    OneHot("discharge_disposition_id", tuple(_DISCHARGE)),
    OneHot("admission_source_id", tuple(_SOURCE)),
    Intervals("time_in_hospital", (2.0, 3.0, 4.0, 6.0, 8.0, 11.0)),
    Intervals("num_lab_procedures", (20.0, 40.0, 60.0, 80.0)),
    Intervals("num_procedures", (1.0, 2.0, 4.0)),
    Intervals("num_medications", (5.0, 10.0, 15.0, 20.0, 30.0)),
    Intervals("number_outpatient", (1.0, 2.0, 5.0)),
    Intervals("number_emergency", (1.0, 2.0, 5.0)),
    Intervals("number_inpatient", (1.0, 2.0, 3.0, 5.0, 10.0)),
    *(OneHot(name, (*_DIAGNOSES, _OTHER)) for name in _DIAGNOSIS),
    Intervals("number_diagnoses", (3.0, 5.0, 7.0, 9.0)),
    OneHot("max_glu_serum", ("Norm", ">200", ">300")),
    OneHot("A1Cresult", ("Norm", ">7", ">8")),
    OneHot("metformin", ("Down", "Steady", "Up")),
    OneHot("insulin", ("Down", "Steady", "Up")),
    OneHot("change", ("Ch",)),
    OneHot("diabetesMed", ("Yes",)),
)
# The largest possible row norm of the schema.
ROW_NORM = math.sqrt(len(SCHEMA))

_NUMBERS = tuple(feature.name for feature in SCHEMA if isinstance(feature, Intervals))
_NAMES = (_PATIENT, *(feature.name for feature in SCHEMA), _LABEL)
_COLUMNS = np.dtype(
    [(name, "i8" if name == _PATIENT else "f8" if name in _NUMBERS else "U16") for name in _NAMES]
)
_SPLIT_SEED = 0
_TRAIN_PERCENT = 80


def load_diabetes130(
    folder: str | os.PathLike[str] | None = None, schema: Sequence[Feature] = SCHEMA
) -> Dataset:
    """Load Diabetes 130-US hospitals with a public schema.

    Parameters
    ----------
    folder
        Holds ``diabetes130/diabetic_data.csv.gz``; by default the environment variable
        ``TACIT_DATA``.
    schema
        By default 114 features, at most one of each of 23 columns set: no row is longer than
        ``diabetes130.ROW_NORM``. Unknown values ("?") become zeros.

    Returns
    -------
    Dataset
        101,766 float64 rows of 71,518 patients, four fifths of whom are for training; the label
        is whether the patient was readmitted within 30 days. ``train_unit`` and ``test_unit`` are
        patients' numbers, which are in no feature.
    """
    table = read_table(find_file("diabetes130/diabetic_data.csv.gz", folder))
    rows, labels, unit = encode(table, schema), table[_LABEL] == _SOON, table[_PATIENT]
    train = _in_train(unit)
    return Dataset(
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[~train],
        test_labels=labels[~train],
        feature_names=feature_names(schema),
        description=DESCRIPTION,
        train_unit=unit[train],
        test_unit=unit[~train],
    )


def read_table(path: Path) -> Table:
    """Read the file, with codes and diagnoses replaced by the words of their groups."""
    places = _places(path)
    table: Table = np.loadtxt(path, _COLUMNS, delimiter=",", skiprows=1, usecols=places)
    table["discharge_disposition_id"] = _words(table["discharge_disposition_id"], _DISCHARGE)
    table["admission_source_id"] = _words(table["admission_source_id"], _SOURCE)
    for name in _DIAGNOSIS:
        table[name] = [_diagnosis(code) for code in table[name]]
    return table


def _places(path: Path) -> list[int]:
    header = np.loadtxt(path, str, delimiter=",", max_rows=1).tolist()
    return [header.index(name) for name in _NAMES]


def _words(codes: npt.NDArray[Any], groups: dict[str, tuple[int, ...]]) -> list[str]:
    word = {str(code): name for name, members in groups.items() for code in members}
    return [word.get(code, "?") for code in codes]


def _diagnosis(code: str) -> str:
    """Return the group of an ICD-9 code; codes that begin with E or V are other causes."""
    if code == "?":
        return code
    if not code[0].isdigit():
        return _OTHER
    number = int(code.partition(".")[0])
    groups = _DIAGNOSES.items()
    return next((n for n, spans in groups if any(a <= number <= b for a, b in spans)), _OTHER)


def _in_train(unit: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the records of the training patients."""
    patients = np.unique(unit)
    order = np.random.default_rng(_SPLIT_SEED).permutation(patients)
    return np.isin(unit, order[: len(patients) * _TRAIN_PERCENT // 100])
