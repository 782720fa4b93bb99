"""C11: the same seed gives the same bytes, in whatever order clients answer."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from common import classification_federation, flat_layout, spec
from fedaccord import (
    Cohort,
    FedAvg,
    FedHV,
    FedPCD,
    LocalSGD,
    Reply,
    Rule,
    Threads,
    Uniform,
    UniformSampler,
    run_round,
    serial,
    simulate,
    start,
)
from fedaccord.metrics import evaluate

from ._shared import every_rule, same

FEDERATION = classification_federation(10, dropout=0.2)
LOCAL = LocalSGD(lr=0.2, batch_size=5)
ONE_TASK: dict[str, Rule[Any]] = {
    "FedAvg": FedAvg(),
    "FedPCD": FedPCD(tau=0.1),
    "Uniform": Uniform(report=1),
    "FedHV": FedHV([3.0]),
    "FedHV over FedPCD": FedHV([3.0], server=FedPCD(tau=0.1)),
}
every_name = pytest.mark.parametrize("name", ONE_TASK)


def answers(count: int = 50, dim: int = 1000) -> list[Reply]:
    source = torch.Generator().manual_seed(11)
    updates = torch.randn(count, dim, generator=source)
    return [
        Reply(
            3 * i,
            1 + i % 7,
            {
                "update": row,
                "task_loss": torch.tensor([0.3 + 0.01 * i, 0.7]),
                "loss": torch.tensor(0.5 + 0.01 * (i % 7)),
                "train_loss": torch.tensor(0.4 + 0.01 * (i % 5)),
                "client_lr": torch.tensor(0.1),
                "control_update": -row / 0.1,
            },
        )
        for i, row in enumerate(updates)
    ]


@every_rule
def test_three_arrival_orders_give_the_same_bytes(rule: Rule[Any]):
    replies = answers()
    shuffled = [replies[i] for i in np.random.default_rng(0).permutation(len(replies))]
    results = []
    for order in (replies, replies[::-1], shuffled):
        cohort = Cohort.stack(order, layout=flat_layout(1000))
        state = rule.init(spec(1000, 200, num_tasks=2))
        step, state, seen = rule.aggregate(state, cohort)
        few = [reply for reply in order if reply.client_id % 2]  # the others are in the history
        later = rule.aggregate(state, Cohort.stack(few, round=1, layout=flat_layout(1000)))
        results.append((step, dict(seen), later.step, dict(later.diagnostics)))
    assert same(results[0], results[1])
    assert same(results[0], results[2])


class Backwards:
    """An executor whose clients work in the opposite order."""

    def __call__(self, algorithm: Any, jobs: Any, model: Any, /) -> Any:
        return serial(algorithm, jobs[::-1], model)[::-1]


EXECUTORS = {"backwards": Backwards(), "threads": Threads(3)}


def fingerprint(name: str, **options: Any) -> str:
    """Model, metrics and chosen clients of the case's run."""
    digest = hashlib.sha256()
    options |= {"local": LOCAL, "sampler": UniformSampler(4), "seed": 7}
    for result in simulate(ONE_TASK[name], FEDERATION, rounds=3, **options):
        training = result.training
        module = FEDERATION.module(training)
        scores = evaluate(module, FEDERATION.clients[0], num_classes=[3])
        digest.update(repr(result.client_ids).encode() + training.params.numpy().tobytes())
        digest.update(scores.losses.numpy().tobytes() + scores.accuracies.numpy().tobytes())
        for key, value in sorted(result.diagnostics.items()):
            shown = value.tolist() if isinstance(value, Tensor) else value
            digest.update(f"{key} {shown!r}".encode())
    return digest.hexdigest()


@every_name
def test_twice_in_one_process_gives_the_same_bytes(name: str):
    assert fingerprint(name) == fingerprint(name)


@every_name
@pytest.mark.parametrize("executor", EXECUTORS.values(), ids=EXECUTORS)
def test_clients_may_work_in_any_order(name: str, executor: Any):
    assert fingerprint(name, executor=executor) == fingerprint(name)


@every_name
def test_global_random_state_is_neither_needed_nor_disturbed(name: str):
    before = fingerprint(name)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the legacy generator is the one that must not matter
    torch.manual_seed(1)
    states = random.getstate(), str(np.random.get_state()), torch.get_rng_state()  # noqa: NPY002
    assert fingerprint(name) == before  # the seeds just set play no part
    assert random.getstate() == states[0]
    assert str(np.random.get_state()) == states[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])


@every_name
def test_the_order_in_which_clients_are_asked_does_not_matter(name: str):
    rule = ONE_TASK[name]
    one, other = (
        run_round(rule, FEDERATION, start(rule, FEDERATION), client_ids=ids, local=LOCAL)
        for ids in ([1, 4, 8], [8, 1, 4])
    )
    assert same(one.training, other.training)


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_a_fresh_process_gives_the_same_bytes(hash_seed: str):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from cases.test_c11_arrival_order import ONE_TASK, fingerprint;"
        "print(*map(fingerprint, ONE_TASK))"
    )
    out = subprocess.check_output(
        [sys.executable, "-c", code, str(Path(__file__).parents[1])],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        text=True,
    )
    assert out.split() == [fingerprint(name) for name in ONE_TASK]
