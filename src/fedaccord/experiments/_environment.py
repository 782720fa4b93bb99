"""Where a run is carried out."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

import torch

PACKAGES = ("fedaccord", "torch", "numpy", "scipy", "daqp", "safetensors")


def environment(workers: int | None) -> dict[str, Any]:
    """What a run's numbers may depend on beside its configuration.

    :param workers: Threads that train clients; ``None`` for one a core.
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
        "byte_order": sys.byteorder,
        "cores": os.cpu_count(),
        "workers": workers or os.cpu_count(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
