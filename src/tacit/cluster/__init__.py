"""Records beyond one machine: sums on a Dask cluster, noise at the driver."""

from tacit.cluster.dask_records import DaskRecords
from tacit.cluster.partials import Partial, one_of_each

__all__ = ["DaskRecords", "Partial", "one_of_each"]
