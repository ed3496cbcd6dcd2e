"""Load KDD Cup 1999, the 10 percent file: whether a network connection is an attack."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.datasets.base import (
    Dataset,
    Feature,
    LogScaled,
    OneHot,
    Scaled,
    Table,
    encode,
    feature_names,
    find_file,
)

DESCRIPTION = (
    "KDD Cup 1999, 10 percent file (doi:10.24432/C51C7N, CC BY 4.0): attack or normal from 41 "
    "features of a network connection. Split 80 to 20 by a fixed permutation; the file repeats "
    "many connections, so the same row can be on both sides."
)

# kddcup.names, in its order.
_HEADER = (
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot "
    "num_failed_logins logged_in num_compromised root_shell su_attempted num_root "
    "num_file_creations num_shells num_access_files num_outbound_cmds is_host_login "
    "is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate "
    "same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count "
    "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate "
    "dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate "
    "dst_host_rerror_rate dst_host_srv_rerror_rate label"
)
_NAMES = tuple(_HEADER.split())
_TEXT = ("protocol_type", "service", "flag", "label")
_COLUMNS = np.dtype([(name, "U16" if name in _TEXT else "f8") for name in _NAMES])

_FLAGS = "SF S0 S1 S2 S3 REJ RSTO RSTOS0 RSTR SH OTH"
# Common Internet services and ICMP messages; the rarer ones become zeros.
_SERVICES = (
    "http smtp ftp ftp_data telnet domain domain_u private ecr_i eco_i urp_i finger auth pop_3 "
    "ntp_u"
)
_YES_OR_NO = ("land", "logged_in", "root_shell", "is_host_login", "is_guest_login")
# Round limits by the counted quantity, set without the data: a day, a gigabyte, counters inside
# one connection, connections to a host within two seconds, a window of about 100 connections.
_LIMITS = {
    "duration": 86_400.0,
    "src_bytes": 1e9,
    "dst_bytes": 1e9,
    "wrong_fragment": 10.0,
    "urgent": 10.0,
    "hot": 100.0,
    "num_failed_logins": 10.0,
    "num_compromised": 1000.0,
    "su_attempted": 10.0,
    "num_root": 1000.0,
    "num_file_creations": 100.0,
    "num_shells": 10.0,
    "num_access_files": 10.0,
    "num_outbound_cmds": 10.0,
    "count": 500.0,
    "srv_count": 500.0,
    "dst_host_count": 100.0,
    "dst_host_srv_count": 100.0,
}

SCHEMA: tuple[Feature, ...] = (
    OneHot("protocol_type", ("tcp", "udp", "icmp")),
    OneHot("flag", tuple(_FLAGS.split())),
    OneHot("service", tuple(_SERVICES.split())),
    *(Scaled(name, 0.0, 1.0) for name in _YES_OR_NO),
    *(Scaled(name, 0.0, 1.0) for name in _NAMES if name.endswith("_rate")),
    *(LogScaled(name, high) for name, high in _LIMITS.items()),
)

_SPLIT_SEED = 0
_TRAIN_PERCENT = 80


def load_kddcup99(
    folder: str | os.PathLike[str] | None = None, schema: Sequence[Feature] = SCHEMA
) -> Dataset:
    """Load KDD Cup 1999 with a public schema.

    Parameters
    ----------
    folder
        Holds ``kddcup99/kddcup.data_10_percent.gz``; by default the environment variable
        ``TACIT_DATA``.
    schema
        By default 67 features, all in [0, 1]: categories, flags, rates and logarithms of counts.

    Returns
    -------
    Dataset
        395,216 and 98,805 float64 rows; the label is whether the connection is an attack.
    """
    table = read_table(find_file("kddcup99/kddcup.data_10_percent.gz", folder))
    rows, labels = encode(table, schema), table["label"] != "normal."
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(table))
    train, test = np.split(order, [len(table) * _TRAIN_PERCENT // 100])
    return Dataset(
        train_rows=rows[train],
        train_labels=labels[train],
        test_rows=rows[test],
        test_labels=labels[test],
        feature_names=feature_names(schema),
        description=DESCRIPTION,
    )


def read_table(path: Path) -> Table:
    """Return the records of the file."""
    table: Table = np.loadtxt(path, dtype=_COLUMNS, delimiter=",", comments=None)
    return table
