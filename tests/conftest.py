"""Settings of the whole test suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

# The default finds the same examples on every machine and in every run.
# `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,  # the machine may be busy
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """Keep torch on one thread: small tensors gain nothing, and runners beside us suffer."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
