"""Sum records on a Dask cluster; the driver adds the noise."""

from tacit.cluster.dask_records import DaskRecords
from tacit.cluster.dask_table import DaskTable

__all__ = ["DaskRecords", "DaskTable"]
