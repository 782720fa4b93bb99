"""What each client's own test rows say of one model, or of a model each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..clients import Batch, ClientData
from ._client_scores import ClientScores, client_scores
from ._evaluate import naming, require_batch_size, require_classes, require_data, scores_of
from ._score import Score, Scores, SurvivalScores, class_scores

Models: TypeAlias = (
    nn.Module | Mapping[int, nn.Module | None] | Iterable[tuple[int, nn.Module | None]]
)
"""One model for all clients, or one each by client id; ``None`` for a client without."""


def evaluate_clients(
    models: Models,
    tests: Sequence[ClientData] | Mapping[int, ClientData],
    *,
    num_classes: Sequence[int] | int | None = None,
    score: Score = class_scores,
    client_ids: Iterable[int] | None = None,
    batch_size: int = 1000,
) -> ClientScores:
    """Score each client on its own test rows, in evaluation mode and without gradients.

    One model for all clients sees the rows of many small clients in one batch. This changes nothing
    but rounding, since layers do not mix examples in evaluation mode; a model with batch norm that
    keeps no running statistics does, and sees each client's rows by themselves.

    :param models: One model for all, or one each as ``personal_models`` and ``after_local_steps``
        give them; an iterator is asked for one model at a time.
    :param tests: The test rows of each client, by id; a client may have none.
    :param num_classes: Number of classes of each task, to check labels by.
    :param score: What a batch scores; ``score_for(kinds)`` chooses.
    :param client_ids: Which clients; all of ``tests`` if not given. One that ``models`` does not
        name has no model.
    :param batch_size: Examples at a time, at least 1.
    :raises TypeError: If ``models`` or test rows are something else.
    :raises ValueError: If nobody has both a test row and a model, an id is unknown or repeated, a
        loss is NaN, or a label is out of range.
    """
    require_batch_size(batch_size)
    known = dict(tests) if isinstance(tests, Mapping) else dict(enumerate(tests))
    for client, data in known.items():
        require_data(data, f"The test rows of client {client}")
    ids = _checked(known if client_ids is None else client_ids, known)
    own = {client: known[client] for client in ids}
    if isinstance(models, nn.Module) and not _mixes_examples(models):
        scores = _together(models, own, score, batch_size)
    else:
        each: Iterable[tuple[int, nn.Module | None]]
        if isinstance(models, nn.Module):
            each = ((client, models) for client in ids)
        elif isinstance(models, Iterable):
            each = models.items() if isinstance(models, Mapping) else models
        else:
            raise TypeError(
                f"`models` must be a module, such as `federation.module(training)`, or one for "
                f"each client. Got {type(models).__name__}."
            )
        scores = _one_by_one(each, own, score, batch_size)
    if not scores:
        raise ValueError("At least one client must have a test row and a model. Got none.")
    if num_classes is not None:
        for client, found in scores.items():
            with naming(client):
                require_classes(found, num_classes)
    return client_scores(ids, [len(data) for data in own.values()], scores)


def _checked(client_ids: Iterable[int], known: Mapping[int, ClientData]) -> tuple[int, ...]:
    ids = sorted(int(client) for client in client_ids)
    if len(set(ids)) < len(ids):
        raise ValueError(f"Client ids must be distinct. Got {ids}.")
    if unknown := [client for client in ids if client not in known]:
        raise ValueError(f"`tests` must have an entry for each client. None for {unknown[:10]}.")
    return tuple(ids)


def _mixes_examples(model: nn.Module) -> bool:
    return any(isinstance(m, _BatchNorm) and m.running_mean is None for m in model.modules())


def _together(
    model: nn.Module, tests: Mapping[int, ClientData], score: Score, batch_size: int
) -> dict[int, Scores | SurvivalScores]:
    """Score the rows of all clients in one pass, and give each client its own."""
    sizes = {client: len(data) for client, data in tests.items() if len(data)}
    if not sizes:
        return {}
    scores = scores_of(model, _filled(tests.values(), batch_size), score)
    columns = [
        [None] * len(sizes) if column is None else column.split(list(sizes.values()))
        for column in scores
    ]
    parts = zip(*columns, strict=True)
    return {client: type(scores)(*part) for client, part in zip(sizes, parts, strict=True)}


def _filled(tests: Iterable[ClientData], batch_size: int) -> Iterator[Batch]:
    """The rows of all clients in order, as many in a batch as fit."""
    waiting: list[Batch] = []
    size = 0
    for data in tests:
        for index in torch.arange(len(data)).split(batch_size):
            if len(index) == 0:
                continue
            batch = data.batch(index)
            if waiting and (size + len(index) > batch_size or not _alike(waiting[0], batch)):
                yield _stacked(waiting)
                waiting, size = [], 0
            waiting.append(batch)
            size += len(index)
    if waiting:
        yield _stacked(waiting)


def _alike(first: Batch, second: Batch) -> bool:
    """Whether two batches differ in nothing but their number of examples."""
    return [(x.shape[1:], x.dtype) for x in first] == [(x.shape[1:], x.dtype) for x in second]


def _stacked(batches: Sequence[Batch]) -> Batch:
    return tuple(torch.cat(parts) for parts in zip(*batches, strict=True))


def _one_by_one(
    models: Iterable[tuple[int, nn.Module | None]],
    tests: Mapping[int, ClientData],
    score: Score,
    batch_size: int,
) -> dict[int, Scores | SurvivalScores]:
    scores: dict[int, Scores | SurvivalScores] = {}
    for client, model in models:
        if client in scores:
            raise ValueError(
                f"`models` must name each client once. It names client {client} twice."
            )
        data = tests.get(client)
        if model is None or data is None or len(data) == 0:
            continue
        with naming(client):
            scores[client] = scores_of(model, _filled([data], batch_size), score)
    return scores
