"""Random operations inside models, drawn from a job's own generator.

Dropout and its kin draw from the process-wide generator, which threads share. Here they are caught
where PyTorch dispatches them, whichever module or function issued them, and sent to a generator
that belongs to the job. What cannot be sent there is refused.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import UncontrolledRandomnessError

aten = torch.ops.aten


class SeededOperations(TorchDispatchMode):
    """Sends random operations to one generator.

    Watching costs some microseconds an operation, so a job asks :meth:`step` before each minibatch:
    once one has passed without a draw, the rest go unwatched. :func:`forbid_global_draws` around
    the whole job catches a model that starts drawing later.

    :param source: The job's generator, on the model's device.
    """

    def __init__(self, source: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._source = source
        self._watched = self._drew = False

    def step(self) -> contextlib.AbstractContextManager[Any]:
        """The context to run one minibatch in."""
        if self._watched and not self._drew:
            return contextlib.nullcontext()
        self._watched = True
        return self

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run ``func``, on the job's generator if it is random."""
        kwargs = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded not in func.tags or _draws_nothing(func, args, kwargs):
            return func(*args, **kwargs)
        self._drew = True
        if torch._C._current_graph_task_id() >= 0:
            raise UncontrolledRandomnessError(
                f"`{func}` was called while gradients were computed, as activation checkpointing "
                f"does. It would draw other numbers than the forward pass did. Do not checkpoint "
                f"parts with random layers."
            )
        if kwargs.get("generator") is not None:  # the model brought its own
            return func(*args, **kwargs)
        if func in _WITHOUT_GENERATOR:
            return _WITHOUT_GENERATOR[func](self._source, *args, **kwargs)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            return func(*args, **{**kwargs, "generator": self._source})
        packet = func.overloadpacket
        for overload in (getattr(packet, name) for name in packet.overloads()):
            names = [argument.name for argument in overload._schema.arguments]
            if "generator" in names and "out" not in names:
                with contextlib.suppress(RuntimeError, TypeError):  # not this overload's arguments
                    return overload(*args, **{**kwargs, "generator": self._source})
        raise UncontrolledRandomnessError(
            f"Random operations must draw from the job's generator, which `{func}` cannot do. Use "
            f"an operation that takes `generator=`, or draw the numbers in the data."
        )


@contextlib.contextmanager
def forbid_global_draws() -> Iterator[None]:
    """Raise if a process-wide generator has moved when the block ends.

    :raises UncontrolledRandomnessError: If PyTorch's, NumPy's or Python's has.
    """
    before = _global_states()
    yield
    moved = [name for name, state in _global_states().items() if state != before[name]]
    if moved:
        raise UncontrolledRandomnessError(
            f"Client work must not draw from global generators: the run's seed does not reach "
            f"them. {' and '.join(moved)} moved. Draw in every minibatch or in none, with PyTorch "
            f"and inside `SeededOperations`; or pass a generator of your own. Other threads of "
            f"this process that draw have the same effect."
        )


def _global_states() -> dict[str, object]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002 - looked at, never drawn from
    return {
        "PyTorch's": torch.random.get_rng_state().numpy().tobytes(),
        "NumPy's": (kind, np.asarray(keys).tobytes(), *rest),
        "Python's": random.getstate(),
    }


def _draws_nothing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation that may be random is not, as called."""
    given = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    given |= {a.name: value for a, value in zip(func._schema.arguments, args, strict=False)}
    given |= kwargs
    no_dropout = any(given.get(name, 1) == 0 for name in ("dropout_p", "dropout"))
    return no_dropout or any(given.get(name) is False for name in ("train", "training"))


def _native_dropout(
    source: torch.Generator, tensor: Tensor, p: float, *_: object
) -> tuple[Tensor, Tensor]:
    kept = torch.empty_like(tensor, dtype=torch.bool).bernoulli_(1 - p, generator=source)
    return tensor * kept / max(1 - p, torch.finfo(tensor.dtype).tiny), kept


def _like(fill: Callable[[Tensor, torch.Generator], Tensor]) -> Callable[..., Tensor]:
    def draw(source: torch.Generator, tensor: Tensor, **options: Any) -> Tensor:
        return fill(torch.empty_like(tensor, **options), source)

    return draw


# operations whose schema has no generator in any overload
_WITHOUT_GENERATOR: dict[Any, Callable[..., Any]] = {
    aten.native_dropout.default: _native_dropout,
    aten.rand_like.default: _like(lambda out, source: out.uniform_(generator=source)),
    aten.randn_like.default: _like(lambda out, source: out.normal_(generator=source)),
}
