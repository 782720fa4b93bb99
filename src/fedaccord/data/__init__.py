"""Data for federations: real datasets, one's own data, and splits over clients.

A split is a function called ``<name>_partition``. The name of its first argument says what it is
made from: ``labels``, ``samples`` (their number or labels), ``client_ids`` or ``inputs``; its other
arguments are options. That is how experiments and the command line find and call it.
"""

from __future__ import annotations

from ._arrays import ArrayData, clients_from_arrays
from ._catalogue import describe, find_data, list_datasets, load, load_shakespeare
from ._class_dirichlet import class_dirichlet_partition
from ._classes import encode_classes
from ._compose import nearest_index, overlay
from ._dataset import Dataset, Samples
from ._dirichlet import client_dirichlet_partition
from ._feature import feature_partition
from ._flwr import flwr_partition
from ._folder import clients_from_folder
from ._frame import clients_from_frame
from ._function import MadeClients, MadeData, clients_from_function
from ._holdout import Holdout, hold_out
from ._hub import load_hugging_face
from ._hugging_face import from_hugging_face
from ._iid import iid_partition, natural_partition
from ._images import load_images
from ._info import DatasetInfo
from ._noise import NoisyData, noisy_clients
from ._own import OwnData
from ._partition import Partition
from ._partition_file import load_partition, save_partition
from ._quantity import quantity_partition
from ._shards import shards_partition
from ._strata import strata_partition
from ._text_windows import TextWindows
from ._torch_dataset import LazyData, clients_from_dataset

__all__ = [
    "ArrayData",
    "Dataset",
    "DatasetInfo",
    "Holdout",
    "LazyData",
    "MadeClients",
    "MadeData",
    "NoisyData",
    "OwnData",
    "Partition",
    "Samples",
    "TextWindows",
    "class_dirichlet_partition",
    "client_dirichlet_partition",
    "clients_from_arrays",
    "clients_from_dataset",
    "clients_from_folder",
    "clients_from_frame",
    "clients_from_function",
    "describe",
    "encode_classes",
    "feature_partition",
    "find_data",
    "flwr_partition",
    "from_hugging_face",
    "hold_out",
    "iid_partition",
    "list_datasets",
    "load",
    "load_hugging_face",
    "load_images",
    "load_partition",
    "load_shakespeare",
    "natural_partition",
    "nearest_index",
    "noisy_clients",
    "overlay",
    "quantity_partition",
    "save_partition",
    "shards_partition",
    "strata_partition",
]
