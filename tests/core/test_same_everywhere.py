"""The same bytes however a run is carried out (case C11)."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from common import classification_federation
from fedaccord import (
    Cohort,
    FedAvg,
    FedHV,
    FedPCD,
    Job,
    LocalSGD,
    Reply,
    Rule,
    Threads,
    TrainingState,
    Uniform,
    UniformSampler,
    load,
    run_round,
    save,
    serial,
    simulate,
    start,
)
from fedaccord.models import lenet
from fedaccord.random import derive, generator

RULES: dict[str, Rule[Any]] = {
    "FedAvg": FedAvg(),
    "FedPCD": FedPCD(tau=0.1, history=2),
    "FedPCD, bfloat16": FedPCD(tau=0.1, history=2, history_dtype="bfloat16"),
    "FedPCD, protect": FedPCD(tau=0.3, infeasible="protect"),
    "FedHV over FedPCD": FedHV([3.0], server=FedPCD(tau=0.1)),
    "Uniform": Uniform(report=1),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)

LOCAL = LocalSGD(lr=0.2, batch_size=5, momentum=0.3, lr_decay=0.9)
FEDERATION = classification_federation(10, dropout=0.3)


def run(rule: Rule[Any], *, rounds: int = 6, seed: int = 7, **options: Any) -> TrainingState:
    results = simulate(
        rule,
        FEDERATION,
        rounds=rounds,
        local=LOCAL,
        sampler=UniformSampler(4),
        seed=seed,
        **options,
    )
    return list(results)[-1].training


@every_rule
def test_repeating_gives_the_same_bytes_and_another_seed_others(rule: Rule[Any]):
    assert torch.equal(run(rule).params, run(rule).params)
    assert not torch.equal(run(rule).params, run(rule, seed=8).params)


@every_rule
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_give_the_same_bytes_as_one_after_the_other(rule: Rule[Any], workers: int):
    assert torch.equal(run(rule).params, run(rule, executor=Threads(workers)).params)


@every_rule
def test_a_resumed_run_gives_the_same_bytes(rule: Rule[Any], tmp_path: Path):
    save(tmp_path / "half", run(rule, rounds=3))
    resumed = run(rule, training=load(tmp_path / "half", rule))
    whole = run(rule)
    assert torch.equal(resumed.params, whole.params)
    save(tmp_path / "resumed", resumed)
    save(tmp_path / "whole", whole)
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()


@every_rule
def test_rounds_one_by_one_give_the_same_bytes(rule: Rule[Any]):
    training = start(rule, FEDERATION, seed=7)
    for round in range(6):
        ids = UniformSampler(4)(10, generator(7, "sample", round))
        training = run_round(
            rule, FEDERATION, training, client_ids=ids[::-1], local=LOCAL, seed=7
        ).training
    assert torch.equal(training.params, run(rule).params)


@every_rule
def test_a_loop_of_ones_own_gives_the_same_bytes(rule: Rule[Any]):
    training = start(rule, FEDERATION, seed=7)
    params, state = training.params, training.rule_state
    algorithm = rule.client_algorithms(LOCAL)["train"]
    for round in range(6):
        payload = {"task_weights": state.weights} if isinstance(rule, FedHV) else {}
        jobs = [
            Job(
                client,
                FEDERATION.spec.layout,
                FEDERATION.losses,
                FEDERATION.clients[client],
                params,
                payload,
                derive(7, "client", round, "train", client),
                round=round,
            )
            for client in UniformSampler(4)(10, generator(7, "sample", round))
        ]
        results = serial(algorithm, jobs[::-1], FEDERATION.model)
        replies = [
            Reply(job.client_id, result.num_examples, result.fields)
            for job, result in zip(jobs[::-1], results, strict=True)
        ]
        step, state, _ = rule.aggregate(state, Cohort.stack(replies, round=round))
        params = params + step
    assert torch.equal(params, run(rule).params)


def test_the_number_of_intra_op_threads_is_left_as_it_was():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run(FedAvg(), rounds=1, executor=Threads(2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_bytes():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import core.test_same_everywhere as t; print(t.digest(t.RULES['FedPCD']))"
    )
    tests = str(Path(__file__).parents[1])
    out = subprocess.run(
        [sys.executable, "-c", code, tests], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == digest(RULES["FedPCD"])


def digest(rule: Rule[Any]) -> str:
    return hashlib.sha256(run(rule).params.numpy().tobytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_lenet_gives_the_same_bytes_in_threads(dropout: float):
    from common import Rows
    from fedaccord import Federation

    rng = torch.Generator().manual_seed(0)
    clients = [
        Rows(torch.randn(40, 1, 28, 28, generator=rng), torch.arange(40) % 10) for _ in range(6)
    ]
    model: Callable[[], torch.nn.Module] = lambda: lenet(dropout=dropout)  # noqa: E731

    def losses(module: torch.nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).reshape(1)

    federation = Federation(model, losses, clients)
    ends = [
        list(simulate(FedPCD(), federation, rounds=2, local=LocalSGD(lr=0.05), executor=executor))[
            -1
        ].training.params
        for executor in (serial, Threads(2))
    ]
    assert torch.equal(*ends)
