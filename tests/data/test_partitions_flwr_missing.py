"""Without Flower Datasets its partitioners are refused in words."""

from __future__ import annotations

import sys

import pytest

from fedaccord.data import flwr_partition
from fedaccord.errors import FedAccordError


def test_a_package_that_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "flwr_datasets.partitioner", None)  # importing it fails
    with pytest.raises(FedAccordError, match=r"pip install 'fedaccord\[flwr-datasets\]'"):
        flwr_partition(object(), [0, 1])
