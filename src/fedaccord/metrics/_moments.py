"""The models that clients have beside the global one: their own, and after their local steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from ..buffers import trained_buffers
from ..clients import PERSONAL, ClientResult, Job, LocalTraining, buffers_kept
from ..errors import ClientFailedError
from ..executors import ClientFailure, serial
from ..federation import Federation
from ..random import derive
from ..training import TrainingState


def personal_models(
    federation: Federation,
    training: TrainingState,
    *,
    key: str = PERSONAL,
    clients: Iterable[int] | None = None,
    missing: Literal["none", "global"] = "none",
) -> Iterator[tuple[int, nn.Module | None]]:
    """Make each client's personal model, one at a time, for ``evaluate_clients``.

    :param federation: Whose clients.
    :param training: What the clients kept, ``client_states[id][key]``, each ``[dim]``.
    :param key: Under which name they kept it.
    :param clients: Which clients; all if not given.
    :param missing: What a client has that kept none, for example because it was never sampled:
        ``"none"`` for no model, which is counted as missing, or ``"global"`` for the global one.
    :return: Pairs of client id and model, in evaluation mode. A model has the buffers that were
        kept with it; else, with ``buffers="local"``, the client's own, or the global ones.
    :raises ValueError: If an id is unknown, a kept vector is not ``[dim]``, or ``missing`` is
        another word.
    """
    if missing not in ("none", "global"):
        raise ValueError(f"`missing` must be 'none' or 'global'. Got {missing!r}.")
    ids = _checked(clients, federation)

    def make() -> Iterator[tuple[int, nn.Module | None]]:
        for client in ids:
            state = training.client_states.get(client, {})
            params = state.get(key)
            if params is None:
                whole = missing == "global"
                yield client, _module(federation, training, client) if whole else None
                continue
            if params.shape != training.params.shape:
                raise ValueError(
                    f"'{key}' of client {client} must be {tuple(training.params.shape)}, one "
                    f"entry per parameter. Got {tuple(params.shape)}."
                )
            beside = buffers_kept(state) if key == PERSONAL else {}
            yield client, _module(federation, training, client, params=params, beside=beside)

    return make()


def after_local_steps(
    federation: Federation,
    training: TrainingState,
    local: LocalTraining,
    *,
    clients: Iterable[int] | None = None,
    seed: int = 0,
) -> Iterator[tuple[int, nn.Module | None]]:
    """Make each client's model after its own local training, one at a time.

    Every client starts from the global model as it would in the next round, with the same data,
    task weights all equal and the next round's learning rate. The random numbers are of a path of
    their own, so that a run that is measured and one that is not stay the same; ``training`` is
    left as it is.

    :param federation: Whose clients.
    :param training: Where training stands.
    :param local: How they train.
    :param clients: Which clients; all if not given.
    :param seed: The run's seed.
    :return: Pairs of client id and model, in evaluation mode; ``None`` for a client without
        training samples, which cannot train.
    :raises ValueError: If an id is unknown.
    :raises ClientFailedError: If a client's training raises, when its turn comes.
    """
    ids = _checked(clients, federation)

    def make() -> Iterator[tuple[int, nn.Module | None]]:
        for client in ids:
            if len(federation.clients[client]) == 0:
                yield client, None
                continue
            job = _job(federation, training, client, seed)
            (result,) = serial(_Descend(local), [job], federation.model)
            if isinstance(result, ClientFailure):
                raise ClientFailedError(
                    f"Client {client} failed in its local steps after {training.round} rounds: "
                    f"{type(result.error).__name__}: {result.error}"
                ) from result.error
            after = replace(training, buffers={**job.buffers, **result.buffers})
            yield client, federation.module(replace(after, params=result.fields["params"]))

    return make()


@dataclass(frozen=True)
class _Descend:
    """Local training that gives the parameters themselves: update plus global would be rounded."""

    local: LocalTraining

    @property
    def reports(self) -> tuple[str, ...]:
        return ("params",)

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        job.load(model)
        params = self.local.descend(job, model).params
        return ClientResult({"params": params}, len(job.data), job.state, trained_buffers(model))


def _job(federation: Federation, training: TrainingState, client: int, seed: int) -> Job:
    return Job(
        client_id=client,
        layout=federation.spec.layout,
        losses=federation.losses,
        data=federation.clients[client],
        params=training.params.clone(),
        payload={},
        seed=derive(seed, "after local steps", training.round, client),
        state=training.client_states.get(client),
        buffers={**training.buffers, **training.client_buffers.get(client, {})},
        round=training.round,
        num_tasks=federation.num_tasks,
    )


def _module(
    federation: Federation,
    training: TrainingState,
    client: int,
    *,
    params: Tensor | None = None,
    beside: Mapping[str, Tensor] | None = None,
) -> nn.Module:
    own = {**training.client_buffers.get(client, {}), **(beside or {})}
    return federation.module(
        replace(
            training,
            params=training.params if params is None else params,
            buffers={**training.buffers, **own},
        )
    )


def _checked(clients: Iterable[int] | None, federation: Federation) -> tuple[int, ...]:
    size = len(federation.clients)
    ids = range(size) if clients is None else sorted({int(client) for client in clients})
    if len(ids) and not (ids[0] >= 0 and ids[-1] < size):
        raise ValueError(f"`clients` must be in [0, {size}). Got {ids[0]} to {ids[-1]}.")
    return tuple(ids)
