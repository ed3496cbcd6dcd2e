"""Sum records on a Dask cluster; the driver adds the noise."""

from tacit.cluster.dask_records import DaskRecords

__all__ = [
    "DaskRecords",
]
