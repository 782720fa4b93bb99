"""Changes of a model's gradients between the backward pass and the step."""

from __future__ import annotations

from torch import Tensor, nn

from ..layout import Layout
from .base import Correct


def shift(layout: Layout, vector: Tensor) -> Correct:
    """Add a vector to the gradient.

    :param layout: The layout of the vector.
    :param vector: ``[dim]``.
    """
    parts = layout.unflatten(vector)

    def correct(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name in parts:
                _add(parameter, parts[name])

    return correct


def pull(layout: Layout, anchor: Tensor, strength: float) -> Correct | None:
    r"""Add the gradient of :math:`\frac s2 \lVert \theta - \text{anchor} \rVert^2`.

    :param layout: The layout of the anchor.
    :param anchor: ``[dim]``.
    :param strength: :math:`s`; nothing is left to do at 0.
    """
    if strength == 0:
        return None
    parts = layout.unflatten(anchor)

    def correct(model: nn.Module) -> None:
        for name, parameter in model.named_parameters():
            if name in parts:
                _add(parameter, strength * (parameter.detach() - parts[name]))

    return correct


def in_turn(*corrections: Correct | None) -> Correct | None:
    """One correction that makes all of these, in this order; ``None`` if there is none."""
    given = [correct for correct in corrections if correct is not None]
    if len(given) < 2:
        return given[0] if given else None

    def correct(model: nn.Module) -> None:
        for each in given:
            each(model)

    return correct


def _add(parameter: nn.Parameter, value: Tensor) -> None:
    value = value.to(parameter.dtype)
    # a parameter that the loss does not reach has no gradient yet
    parameter.grad = value.clone() if parameter.grad is None else parameter.grad + value
