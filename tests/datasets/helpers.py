"""The folder with the data sets, or a reason to skip."""

import numpy as np
import pytest

from tacit.datasets.base import find_file


def needs(name):
    """Skip the tests of a module whose data file is missing."""
    try:
        find_file(name)
        missing = False
    except FileNotFoundError:
        missing = True
    return pytest.mark.skipif(missing, reason=f"no {name}: set TACIT_DATA to the data folder")


def check_only_own_record(encode, table):
    """Encoding some records gives those rows of the encoding of all."""
    some = np.random.default_rng(0).permutation(len(table))[: len(table) // 7]
    assert np.array_equal(encode(table[some]), encode(table)[some])
    assert np.array_equal(encode(table[:1]), encode(table)[:1])
