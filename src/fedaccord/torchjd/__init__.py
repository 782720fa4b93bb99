"""TorchJD's aggregators as rules, and FedPCD's parent method as an aggregator of TorchJD.

Needs the extra ``torchjd``; nothing else of fedaccord imports this package.
"""

from __future__ import annotations

try:
    import torchjd.aggregation  # noqa: F401 - asked for here, so that its absence is explained
except ImportError as error:
    raise ImportError(
        "`fedaccord.torchjd` needs TorchJD. Install it with `pip install 'fedaccord[torchjd]'`."
    ) from error

from ._pcd import PCD
from ._pcd_weighting import PCDWeighting
from ._rule import FromTorchJD

__all__ = ["PCD", "FromTorchJD", "PCDWeighting"]
