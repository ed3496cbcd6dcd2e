"""Fits whose records are on a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.cli.errors import Refused

_SECONDS = 30


def check_tls(scheduler: str | None, *files: Path | None) -> None:
    """Refuse certificates without a scheduler, without each other, or for a plain connection."""
    given = [file for file in files if file is not None]
    if not given:
        return
    if scheduler is None or len(given) < len(files):
        raise Refused("--tls-ca, --tls-cert and --tls-key belong together, and to --scheduler.")
    if not scheduler.startswith("tls://"):
        raise Refused(
            "certificates are for a scheduler behind TLS; its address begins with tls://."
        )


@contextlib.contextmanager
def connected(scheduler: str, *tls: Path | None) -> Iterator[Any]:
    """Yield a client of the cluster at an address, with the three files of TLS or without."""
    try:
        from distributed import Client
        from distributed.security import Security
    except ImportError:
        raise Refused(
            '--scheduler needs Dask, which is not installed; pip install "tacit[dask]".'
        ) from None
    security = None
    if all(tls):
        ca, cert, key = map(str, tls)
        security = Security(
            tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True
        )
    try:
        client = Client(scheduler, security=security, timeout=_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise Refused(
            f"the scheduler at {scheduler!r} does not answer ({type(error).__name__}); check the "
            "address and the certificates."
        ) from None
    with client:
        yield client


def fit_there(model: Any, data: str, client: Any, dtype: str, delimiter: str | None) -> None:
    """Fit a model of a table to files that the workers of a cluster read."""
    from tacit.cluster import DaskRecords
    from tacit.table_model import TableModel

    if not isinstance(model, TableModel):
        raise Refused("--scheduler goes without --evaluate, and with a schema that is complete.")
    if delimiter is not None:
        raise Refused("--scheduler reads CSV files with commas; leave --delimiter out.")
    schema = model.schema
    model.fit_records(
        lambda bounds: DaskRecords.from_files(data, schema, bounds, client, dtype=dtype)
    )
