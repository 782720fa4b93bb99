"""FedHV's reference: above every task loss that a few rounds of plain training report."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor

from .clients import LocalTraining
from .errors import EmptyRoundError
from .executors import Executor, serial
from .federation import Federation
from .reply import Policy
from .rules import Uniform
from .samplers import Sampler
from .simulation import simulate


def calibrate(
    federation: Federation,
    *,
    local: LocalTraining | None = None,
    sampler: Sampler | None = None,
    rounds: int = 20,
    margin: float = 0.15,
    seeds: Sequence[int] = (0,),
    server_lr: float = 1.0,
    report: Literal["all"] | int = "all",
    executor: Executor = serial,
    policy: Policy | None = None,
) -> tuple[float, ...]:
    """Run :class:`~fedaccord.Uniform` and take each task's largest mean report plus a margin.

    The trained models are thrown away. A reference is only as safe as these rounds are typical:
    a loss may pass it later, and the floor of :class:`~fedaccord.FedHV` then takes over.

    :param federation: Who takes part.
    :param local: How clients train.
    :param sampler: Who is asked in a round.
    :param rounds: Rounds a run, at least 1; 20 in the paper.
    :param margin: Added to the maximum, positive; 0.15 or 0.3 in the paper.
    :param seeds: One run for each, at least one.
    :param server_lr: The runs' server learning rate.
    :param report: How much data clients report on.
    :param executor: Who carries out the jobs.
    :param policy: What to do with unusable contributions and empty rounds; raise by default.
    :return: One reference a task, for ``FedHV(reference=...)``.
    :raises ValueError: If an argument is out of range.
    :raises EmptyRoundError: If every round was empty, so that there is no report.
    """
    if not isinstance(rounds, Integral) or rounds < 1:
        raise ValueError(f"`rounds` must be an integer of at least 1. Got {rounds!r}.")
    if not margin > 0:
        raise ValueError(f"`margin` must be positive. Got {margin}.")
    if len(seeds) == 0:
        raise ValueError("`seeds` must hold at least one seed.")
    rule = Uniform(server_lr=server_lr, report=report)
    reports: list[Tensor] = []
    for seed in seeds:
        for result in simulate(
            rule,
            federation,
            rounds=rounds,
            local=local,
            sampler=sampler,
            seed=int(seed),
            executor=executor,
            policy=policy,
        ):
            if result.empty:
                continue
            losses = result.diagnostics["task_losses"]
            assert isinstance(losses, Tensor)
            reports.append(losses)
    if not reports:
        raise EmptyRoundError(
            f"Calibration needs a round with contributions. All {rounds * len(seeds)} were empty."
        )
    return tuple((torch.stack(reports).max(0).values + margin).tolist())
