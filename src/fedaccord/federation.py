"""Who takes part: a model, a loss and the clients' data."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from .buffers import beside, write
from .clients import ClientData, Losses
from .layout import Layout, Spec
from .random import derive
from .rule import Rule


class Trained(Protocol):
    """The trained part of a training state."""

    @property
    def params(self) -> Tensor:
        """Trainable parameters, ``[dim]``."""
        ...

    @property
    def buffers(self) -> Mapping[str, Tensor]:
        """Frozen parameters and buffers, by name."""
        ...

    @property
    def rule_state(self) -> Any:
        """What the rule remembers."""
        ...


# two threads that seed the global generator at once would spoil each other's model
_BUILDING = threading.Lock()


@dataclass(frozen=True)
class Federation:
    """A model, a loss and the data of every client.

    :param model: Makes a new model at each call; never an instance, which would be trained in
        place.
    :param losses: ``losses(model, batch)`` gives each task's mean loss over the batch, ``[m]``.
    :param clients: Each client's training set; its position is the client's id.
    :param num_tasks: Number of tasks ``m``.
    :param buffers: What becomes of batch-norm statistics and other buffers: ``"average"`` by
        example share (integer ones take the maximum), or ``"local"``, where each client keeps its
        own and the global model keeps those it began with.
    :param device: Where parameters live and models compute.
    :raises TypeError: If ``model`` is no factory, or ``clients`` no sequence.
    :raises ValueError: If there is no client or no task.
    """

    model: Callable[[], nn.Module]
    losses: Losses
    clients: Sequence[ClientData]
    num_tasks: int = 1
    buffers: Literal["average", "local"] = "average"
    device: str = "cpu"

    def __post_init__(self) -> None:
        if isinstance(self.model, nn.Module):
            raise TypeError(
                "`model` must be a function that makes a new model. Got a model; write "
                "`lambda: ...` or pass the class."
            )
        if not callable(self.model):
            raise TypeError(f"`model` must be a function that makes a model. Got {self.model!r}.")
        if isinstance(self.clients, Mapping) or not hasattr(self.clients, "__getitem__"):
            raise TypeError(
                f"`clients` must be a sequence of clients' data, whose positions are the ids. Got "
                f"{type(self.clients).__name__}."
            )
        if isinstance(self.losses, nn.Module) or not callable(self.losses):
            raise TypeError(
                f"`losses` must be a function `losses(model, batch)` that gives each task's mean "
                f"loss, [m]. Got {self.losses!r}."
            )
        if torch.device(self.device).type == "cuda" and not torch.cuda.is_available():
            raise ValueError(
                f"`device` must be there. Got {self.device!r}, and PyTorch finds none."
            )
        if self.num_tasks < 1:
            raise ValueError(f"`num_tasks` must be at least 1. Got {self.num_tasks}.")
        if len(self.clients) == 0:
            raise ValueError("`clients` must hold at least one client's data.")
        first = self.clients[0]
        if not (hasattr(first, "batch") and hasattr(first, "__len__")):
            raise TypeError(
                f"A client's data must have `len(data)` and `data.batch(index)`. Got a "
                f"{type(first).__name__} at position 0. `fedaccord.data.ArrayData.of(x, y)` makes "
                f"it from arrays."
            )
        if self.buffers not in ("average", "local"):
            raise ValueError(f"`buffers` must be 'average' or 'local'. Got {self.buffers!r}.")

    @cached_property
    def spec(self) -> Spec:
        """What rules may know of this federation.

        :raises TypeError: If ``model`` gives the same object twice.
        """
        model = build(self.model, 0)
        shared = {id(part) for part in model.modules()}
        if any(id(part) in shared for part in build(self.model, 0).modules()):
            raise TypeError(
                "`model` must make a new model at each call, all its parts included. It gave the "
                "same one twice, which clients would train in each other's place."
            )
        return Spec(Layout.of(model), len(self.clients), self.num_tasks)

    def initial(self, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
        """The parameters ``[dim]`` and other tensors that training starts from.

        :param seed: The run's seed; the model's random initialisation follows from it.
        """
        model = build(self.model, derive(seed, "model")).to(self.device)
        return self.spec.layout.flatten(model), beside(model, self.spec.layout)

    def from_state_dict(self, state_dict: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """The parameters ``[dim]`` and other tensors of a given ``state_dict``.

        :raises RuntimeError: If it does not fit the model (PyTorch's own message).
        """
        model = build(self.model, 0)
        model.load_state_dict(dict(state_dict))
        model.to(self.device)
        return self.spec.layout.flatten(model), beside(model, self.spec.layout)

    def module(self, trained: Trained, /, *, rule: Rule[Any] | None = None) -> nn.Module:
        """The global model as a module of its own, in evaluation mode.

        :param trained: A :class:`~fedaccord.TrainingState`.
        :param rule: The rule it was trained with: then the model is the one that rule evaluates,
            which for some is not the last; see :meth:`Rule.evaluated`.
        """
        if not hasattr(trained, "params"):
            raise TypeError(
                f"`trained` must be a training state, such as `result.training`. Got "
                f"{type(trained).__name__}."
            )
        model = build(self.model, 0).to(self.device)
        params = trained.params
        if rule is not None:
            params = rule.evaluated(trained.rule_state, params)
        self.spec.layout.write(params, model)
        write(trained.buffers, model)
        return model.eval()


def build(model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Call a model factory with seeded initialisation, leaving the global generator as it was."""
    with _BUILDING, torch.random.fork_rng(devices=[]), torch.inference_mode(mode=False):
        torch.default_generator.manual_seed(seed)
        return model()
