"""Data for federations: small real datasets, one's own arrays, and splits over clients."""

from __future__ import annotations

from ._arrays import ArrayData, clients_from_arrays
from ._compose import nearest_index, overlay
from ._dataset import Dataset
from ._dirichlet import client_dirichlet_partition
from ._iid import iid_partition, natural_partition
from ._partition import Partition
from ._shipped import list_datasets, load
from ._strata import strata_partition

__all__ = [
    "ArrayData",
    "Dataset",
    "Partition",
    "client_dirichlet_partition",
    "clients_from_arrays",
    "iid_partition",
    "list_datasets",
    "load",
    "natural_partition",
    "nearest_index",
    "overlay",
    "strata_partition",
]
