"""The correspondence between a model's trainable parameters and one flat vector."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy


@dataclass(frozen=True)
class Layout:
    """Where each trainable parameter of a model sits in a vector ``[dim]``.

    Frozen parameters and buffers have no place in the vector: they never enter an inner product, a
    norm or a server step.

    :param names: Parameter names in model order, without repetition.
    :param shapes: The shape of each.
    :raises ValueError: If the numbers differ, a name repeats, or there is no entry at all.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.shapes):
            raise ValueError(
                f"`names` and `shapes` must have equal length. Got {len(self.names)} and "
                f"{len(self.shapes)}."
            )
        if len(set(self.names)) != len(self.names):
            raise ValueError("`names` must be unique.")
        if self.dim == 0:
            raise ValueError(
                "A layout must hold at least one parameter. Found none that is trainable; set "
                "`requires_grad=True` on those to train."
            )

    @classmethod
    def of(cls, model: nn.Module) -> Layout:
        """Read the layout of the parameters of ``model`` that require gradients.

        Parameters of different floating-point types share one vector of the widest.

        :raises ValueError: If there is none, or one is complex.
        """
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        for name, parameter in trainable.items():
            if is_lazy(parameter):
                raise ValueError(
                    f"Parameters must have a shape. `{name}` is lazy; let the factory run the "
                    f"model once before returning it."
                )
            if not parameter.is_floating_point():
                raise ValueError(
                    f"Trainable parameters must be real floating-point numbers. `{name}` is "
                    f"{parameter.dtype}."
                )
        return cls(tuple(trainable), tuple(tuple(p.shape) for p in trainable.values()))

    @cached_property
    def dim(self) -> int:
        """The length of the vector."""
        return sum(math.prod(shape) for shape in self.shapes)

    @cached_property
    def blocks(self) -> Mapping[str, slice]:
        """Where each named parameter sits in the vector."""
        blocks, start = {}, 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            blocks[name] = slice(start, start + math.prod(shape))
            start += math.prod(shape)
        return blocks

    def flatten(self, tensors: Mapping[str, Tensor] | nn.Module) -> Tensor:
        """Copy named tensors, or a model's parameters, into a new vector ``[dim]``.

        :raises ValueError: If a name is missing or a shape differs.
        """
        if isinstance(tensors, nn.Module):
            tensors = dict(tensors.named_parameters())
        for name, shape in zip(self.names, self.shapes, strict=True):
            if name not in tensors:
                raise ValueError(f"The layout needs `{name}`. Found {sorted(tensors)}.")
            if tuple(tensors[name].shape) != shape:
                raise ValueError(
                    f"`{name}` must have shape {shape}. Got {tuple(tensors[name].shape)}."
                )
        return torch.cat([tensors[name].detach().reshape(-1) for name in self.names])

    def unflatten(self, vector: Tensor) -> dict[str, Tensor]:
        """View a vector ``[dim]`` as named tensors; they share its memory.

        :raises ValueError: If the vector does not have shape ``[dim]``.
        """
        self._check(vector)
        return {
            name: vector[self.blocks[name]].view(shape)
            for name, shape in zip(self.names, self.shapes, strict=True)
        }

    def write(self, vector: Tensor, model: nn.Module) -> None:
        """Copy a vector ``[dim]`` into the parameters of ``model``.

        :raises ValueError: If the vector does not have shape ``[dim]``.
        """
        parameters = dict(model.named_parameters())
        with torch.no_grad():
            for name, value in self.unflatten(vector).items():
                parameters[name].copy_(value)

    def columns(self, names: Iterable[str]) -> Tensor:
        """Indices into the vector of the named parameters, in model order, int64.

        :raises ValueError: If a name is not in the layout.
        """
        wanted = set(names)
        if unknown := wanted - set(self.names):
            raise ValueError(f"The layout has no {sorted(unknown)}. It has {list(self.names)}.")
        ranges = [
            torch.arange(self.blocks[name].start, self.blocks[name].stop)
            for name in self.names
            if name in wanted
        ]
        return torch.cat(ranges) if ranges else torch.empty(0, dtype=torch.int64)

    def _check(self, vector: Tensor) -> None:
        if tuple(vector.shape) != (self.dim,):
            raise ValueError(
                f"A vector of this layout must have shape ({self.dim},). Got {tuple(vector.shape)}."
            )


@dataclass(frozen=True)
class Spec:
    """All that a rule may know before round 0.

    :param layout: The layout of the model's vector.
    :param num_clients: Number of clients of the federation, at least 1.
    :param num_tasks: Number of tasks ``m``, at least 1.
    :raises ValueError: If a number is below 1.
    """

    layout: Layout
    num_clients: int
    num_tasks: int = 1

    def __post_init__(self) -> None:
        for name in ("num_clients", "num_tasks"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1. Got {getattr(self, name)}.")

    @property
    def dim(self) -> int:
        """Number of trainable parameters."""
        return self.layout.dim
