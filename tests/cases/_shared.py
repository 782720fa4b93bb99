"""What the cases share: every rule that exists, and federations whose updates are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from common import Point, Rows, spec, two_task_distances
from fedaccord import (
    CRAFT,
    Aggregation,
    ClientResult,
    Cohort,
    FedDyn,
    Federation,
    FedHEAL,
    FedMGDAPlus,
    FedPW,
    Job,
    LocalOnly,
    LocalSGD,
    LocalTraining,
    Policy,
    PropFair,
    QFedAvg,
    Rule,
    ServerAdagrad,
    ServerAdam,
    ServerYogi,
    Threads,
    serial,
)
from fedaccord.clients import Descent
from rules.test_battery import RULES, cohort_of, every_rule, every_rule_along_updates, same

__all__ = ["RULES", "cohort_of", "every_rule", "every_rule_along_updates", "same"]

EXECUTORS = {"serial": serial, "threads": Threads(2)}
every_executor = pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)

# the rules that make a projection, so that conflicts mean something to them
PROJECTING = {
    name: rule
    for name, rule in RULES.items()
    if "FedPCD" in name and "Server" not in name  # whose step is another one
}
every_projecting_rule = pytest.mark.parametrize("rule", PROJECTING.values(), ids=PROJECTING)

# the rules that move the shared model and its statistics
SHARING = {name: rule for name, rule in RULES.items() if not isinstance(rule, LocalOnly)}
every_sharing_rule = pytest.mark.parametrize("rule", SHARING.values(), ids=SHARING)

# Rules whose step is not as long as the average, and rules that weigh equal clients unequally if
# their updates or losses differ. Their pages say how long and how; of them only the direction is
# asked where all move alike. Of adaptive steps only the signs are: elements are scaled apart.
LENGTH_OF_ITS_OWN: tuple[type, ...] = (CRAFT, FedDyn, FedMGDAPlus, PropFair, QFedAvg)
WEIGHTS_OF_ITS_OWN: tuple[type, ...] = (FedHEAL, FedPW)
ADAPTIVE: tuple[type, ...] = (ServerAdagrad, ServerAdam, ServerYogi)

# one full-batch step of this rate goes to the client's centre, so updates are centres
LOCAL = LocalSGD(lr=1.0, batch_size=1000, report="all")
DROP = Policy(on_invalid="drop")
SKIP = Policy(on_empty="skip")


def rows(values: Sequence[Sequence[float]], dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def assert_follows(
    rule: Rule[Any], step: Tensor, wanted: Tensor, *, alike: bool = True, **tolerances: float
) -> None:
    """Assert that a rule took the average at its `server_lr`, or at least the average's direction.

    :param wanted: The average.
    :param alike: Whether all clients did the same, so that weights do not matter.
    """
    own = LENGTH_OF_ITS_OWN if alike else (*LENGTH_OF_ITS_OWN, *WEIGHTS_OF_ITS_OWN)
    if isinstance(rule, LocalOnly):
        assert not step.any()
        return
    if isinstance(rule, ADAPTIVE):
        assert torch.equal(step.sign(), wanted.sign().to(step.dtype))
        return
    if isinstance(rule, own) or getattr(rule, "legacy", False):
        assert step.any()
        step, wanted = (v / v.abs().max() for v in (step, wanted))
        step, wanted = (v / v.double().norm() for v in (step, wanted))
        wanted = wanted.to(step.dtype)
    else:
        wanted = wanted.to(step.dtype) * getattr(rule, "server_lr", 1.0)
    assert_close(step, wanted, **tolerances)


def aggregate(rule: Rule[Any], cohort: Cohort, state: Any = None) -> Aggregation[Any]:
    """Aggregate from the state before round 0, or from the one given."""
    if state is None:
        state = rule.init(spec(cohort.updates.shape[1], 12, num_tasks=2))
    return rule.aggregate(state, cohort)


def federation_of(
    updates: Sequence[Sequence[float]], *, num_examples: Sequence[int] | None = None
) -> Federation:
    """Clients whose update in round 0 is the given one, with `LOCAL`; two equal tasks."""
    counts = [1] * len(updates) if num_examples is None else num_examples
    clients = []
    for update, count in zip(updates, counts, strict=True):
        points = rows([update]).expand(count, -1)
        clients.append(Rows(points, points))
    dim = len(updates[0])
    return Federation(lambda: Point(dim), two_task_distances, clients, num_tasks=2)


@dataclass(frozen=True)
class Tampered:
    """Local training of which some clients send something else.

    :param change: What becomes of their results.
    :param clients: Which ones.
    """

    change: Callable[[ClientResult], ClientResult]
    clients: tuple[int, ...]
    inner: LocalTraining = LOCAL

    @property
    def reports(self) -> tuple[str, ...]:
        return self.inner.reports

    def reporting(self, budget: Any, /) -> Tampered:
        return replace(self, inner=self.inner.reporting(budget))

    def __call__(self, job: Job, model: nn.Module, /, **options: Any) -> ClientResult:
        result = self.inner(job, model, **options)
        return self.change(result) if job.client_id in self.clients else result

    def descend(self, job: Job, model: nn.Module, **options: Any) -> Descent:
        return self.inner.descend(job, model, **options)
