"""Sum records on a Dask cluster; the driver adds the noise."""

from tacit.cluster.dask_records import DaskRecords, Partial, one_of_each

__all__ = ["DaskRecords", "Partial", "one_of_each"]
