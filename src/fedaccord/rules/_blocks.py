"""The blocks of the vector that per-layer rules work in."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..cohort import Cohort
from ..errors import MissingFieldError
from ..layout import Layout

Blocks: TypeAlias = Literal["modules", "tensors", "model"]


def check_blocks(blocks: str) -> None:
    """Refuse a kind of blocks that is none.

    :raises ValueError: If it is not one of the three.
    """
    if blocks not in ("modules", "tensors", "model"):
        raise ValueError(f"`blocks` must be 'modules', 'tensors' or 'model'. Got {blocks!r}.")


def blocks_of(cohort: Cohort, kind: Blocks) -> tuple[slice, ...]:
    """Consecutive parts of the vector, in model order.

    :param cohort: Gives the layout.
    :param kind: ``"tensors"``: every parameter is a block. ``"modules"``: neighbouring parameters
        of one owner are; see :func:`owners`. ``"model"``: all of it is one block.
    :raises MissingFieldError: If the cohort was stacked without a layout.
    """
    if kind == "model":
        return (slice(0, cohort.updates.shape[1]),)
    if cohort.layout is None:
        raise MissingFieldError(
            "Rules that work per layer need the layout. Pass `layout=` to `Cohort.stack`."
        )
    parts = cohort.layout.blocks
    names = owners(cohort.layout) if kind == "modules" else cohort.layout.names
    merged: list[tuple[str, slice]] = []
    for owner, part in zip(names, parts.values(), strict=True):
        if merged and merged[-1][0] == owner:
            merged[-1] = (owner, slice(merged[-1][1].start, part.stop))
        else:
            merged.append((owner, part))
    return tuple(part for _, part in merged)


def owners(layout: Layout) -> tuple[str, ...]:
    """The owner of each parameter, read from its name and shape.

    ``x.weight`` and ``x.bias`` belong to module ``x``. A normalisation, whose weight is a vector,
    belongs to the last convolution before it among its siblings, if there is one. Anything else
    owns itself.
    """
    shapes = dict(zip(layout.names, layout.shapes, strict=True))
    convolutions: dict[str, str] = {}  # the last one seen, by parent
    found = []
    for name, shape in shapes.items():
        module, _, leaf = name.rpartition(".")
        parent = module.rpartition(".")[0]
        vector = len(shapes.get(f"{module}.weight", ())) == 1
        if leaf not in ("weight", "bias"):
            found.append(name)
        elif vector and parent in convolutions:
            found.append(convolutions[parent])
        else:
            found.append(module)
            if leaf == "weight" and len(shape) >= 3:
                convolutions[parent] = module
    return tuple(found)
