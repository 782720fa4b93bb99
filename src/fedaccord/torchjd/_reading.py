"""What a module of TorchJD wants to be given, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, get_args, get_origin

from torch import nn
from torchjd.aggregation import (
    Aggregator,
    GramianWeightedAggregator,
    WeightedAggregator,
    Weighting,
)
from torchjd.linalg import Matrix, PSDMatrix

AnyAggregator: TypeAlias = Aggregator | Weighting[PSDMatrix] | Weighting[Matrix]


@dataclass(frozen=True)
class Reading:
    """How to ask a module.

    :param module: What to call.
    :param wants_gramian: Whether it takes the Gramian ``[n, n]``, or the matrix ``[n, dim]``.
    :param gives_weights: Whether it answers with weights ``[n]``, or with a vector ``[dim]``.
    """

    module: nn.Module
    wants_gramian: bool
    gives_weights: bool


def read(module: AnyAggregator) -> Reading:
    """Say how to ask a module for as little as possible.

    :raises ValueError: If a weighting does not say what it is a weighting of.
    """
    if isinstance(module, Weighting):
        return Reading(module, wants_gramian=_weighs_gramians(module), gives_weights=True)
    if (
        not isinstance(module, WeightedAggregator)
        or type(module).forward is not WeightedAggregator.forward
        or _is_hooked(module)
    ):
        return Reading(module, wants_gramian=False, gives_weights=False)
    if isinstance(module, GramianWeightedAggregator) and not _is_hooked(module.weighting):
        return Reading(module.gramian_weighting, wants_gramian=True, gives_weights=True)
    return Reading(module.weighting, wants_gramian=False, gives_weights=True)


def _is_hooked(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _weighs_gramians(weighting: Weighting[PSDMatrix] | Weighting[Matrix]) -> bool:
    """Read ``Weighting[PSDMatrix]`` or ``Weighting[Matrix]`` from the bases of its class."""
    for cls in type(weighting).__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            if get_origin(base) is Weighting and isinstance(get_args(base)[0], type):
                return issubclass(get_args(base)[0], PSDMatrix)
    raise ValueError(
        f"A weighting must say what it weighs, as `Weighting[PSDMatrix]` or `Weighting[Matrix]`. "
        f"{type(weighting).__name__} does not; wrap it in `WeightedAggregator` or "
        f"`GramianWeightedAggregator`."
    )
