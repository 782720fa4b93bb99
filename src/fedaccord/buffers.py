"""What a model holds beside its trainable parameters: buffers and frozen parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from .layout import Layout
from .linalg import combine


def beside(model: nn.Module, layout: Layout) -> dict[str, Tensor]:
    """Copies of a model's frozen parameters and buffers, by name."""
    return {
        name: value.detach().clone()
        for name, value in _tensors(model).items()
        if name not in layout.blocks
    }


def trained_buffers(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the buffers that training may have changed and a ``state_dict`` holds."""
    persistent = model.state_dict()
    return {
        name: buffer.detach().clone()
        for name, buffer in model.named_buffers()
        if name in persistent
    }


def write(buffers: Mapping[str, Tensor], model: nn.Module) -> None:
    """Copy named buffers and frozen parameters into a model."""
    tensors = _tensors(model)
    with torch.no_grad():
        for name, value in buffers.items():
            tensors[name].copy_(value)


def merge(clients: Sequence[tuple[int, Mapping[str, Tensor]]]) -> dict[str, Tensor]:
    """One value of each buffer for the global model.

    Floating-point buffers are averaged by example share; integers and flags take the maximum, since
    a mean of counters is no count.

    :param clients: Number of examples and buffers of each client, in client-id order, at least one.
    """
    counts = torch.tensor([examples for examples, _ in clients], dtype=torch.float64)
    shares = counts / counts.sum() if counts.any() else torch.full_like(counts, 1 / len(counts))
    merged = {}
    for name in clients[0][1]:
        values = torch.stack([buffers[name] for _, buffers in clients])
        if values.is_floating_point() or values.is_complex():
            real = torch.view_as_real(values) if values.is_complex() else values
            flat = combine(real.reshape(len(values), -1), shares)
            mean = flat.to(real.dtype).reshape(real.shape[1:])
            merged[name] = torch.view_as_complex(mean) if values.is_complex() else mean
        else:
            merged[name] = values.amax(0)
    return merged


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}
