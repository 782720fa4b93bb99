"""What a number is about: which model, when, over whom, counted how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

EACH_CLIENT = "each client counted once"
EACH_EXAMPLE = "each example counted once"


@dataclass(frozen=True)
class Label:
    """What a number is about.

    :param model: Which model, for example ``"global"`` or ``"personal"``.
    :param moment: When, for example ``"after 150 rounds"``; :func:`moment` writes it.
    :param population: Over whom, for example ``"all clients"``; :func:`populations` names them.
    :param weighting: What counts how much.
    """

    model: str
    moment: str
    population: str
    weighting: str

    def __str__(self) -> str:
        return f"{self.model} model, {self.moment}, {self.population}, {self.weighting}"


def moment(rounds: int, *, local_steps: Literal["before", "after"] | None = None) -> str:
    """Write down when a model was measured.

    :param rounds: How many rounds were done, ``TrainingState.round``.
    :param local_steps: Whether clients had received the global model and not yet trained, or had
        trained from it; ``None`` where that is not the question.
    :raises ValueError: If ``rounds`` is negative.
    """
    if rounds < 0:
        raise ValueError(f"`rounds` must be at least 0. Got {rounds}.")
    when = f"after {rounds} round{'' if rounds == 1 else 's'}" if rounds else "before training"
    return when if local_steps is None else f"{when}, {local_steps} local steps"


def populations(
    num_clients: int, sampled: Iterable[Sequence[int]], *, held_out: Iterable[int] = ()
) -> dict[str, tuple[int, ...]]:
    """Split clients by whether the model has seen them.

    :param num_clients: Number of clients of the federation, whose ids are ``[0, N)``.
    :param sampled: The clients of each round so far, ``RoundResult.client_ids``, in order.
    :param held_out: Ids of clients that are not in the federation, at least ``N``.
    :return: Sorted ids under the name of each population, which may be empty: all clients, those
        of the last round, those of any round, those of none, and those held out.
    :raises ValueError: If an id is out of range.
    """
    rounds = [sorted(clients) for clients in sampled]
    seen = {client for clients in rounds for client in clients}
    outside = tuple(sorted(set(held_out)))
    if seen and not (min(seen) >= 0 and max(seen) < num_clients):
        raise ValueError(
            f"`sampled` must hold ids in [0, {num_clients}). Got {min(seen)} to {max(seen)}."
        )
    if outside and outside[0] < num_clients:
        raise ValueError(
            f"`held_out` must hold ids of at least {num_clients}, that are not in the federation. "
            f"Got {outside[0]}."
        )
    return {
        "all clients": tuple(range(num_clients)),
        "clients sampled in this round": tuple(rounds[-1]) if rounds else (),
        "clients sampled so far": tuple(sorted(seen)),
        "never-sampled clients": tuple(c for c in range(num_clients) if c not in seen),
        "held-out clients": outside,
    }
