"""SCAFFOLD: control variates, how many clients divide them, and plain SGD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from common import make_cohort, spec
from fedaccord import (
    SCAFFOLD,
    ClientAlgorithm,
    ClientResult,
    ContributionError,
    FedPCD,
    FedProx,
    Job,
    LocalSGD,
    LocalTraining,
    MissingFieldError,
    Uniform,
    check,
    run_round,
    start,
)
from fedaccord.clients import ControlVariate
from rules.quadratics import quadratics, rounds_of

CLIENTS = [
    {"a": 1.0, "c": [1.0, 0.0]},
    {"a": 2.0, "c": [-1.0, 2.0]},
    {"a": 0.5, "c": [0.0, -4.0]},
]
FEDERATION = quadratics(CLIENTS)
LOCAL = LocalSGD(lr=0.1, steps=2)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_two_clients_in_two_dimensions():
    # changes (1, 0) and (0, 2) of 10 clients' controls: c = (.1, .2); the step is the plain mean
    rule = SCAFFOLD()
    cohort = make_cohort(
        [[2.0, 0.0], [0.0, 6.0]], num_examples=[1, 9], control_update=[[1.0, 0.0], [0.0, 2.0]]
    )
    step, state, seen = rule.aggregate(rule.init(spec(2, 10)), cohort)
    assert_close(step, vector(1.0, 3.0))
    assert_close(state.control, vector(0.1, 0.2))
    assert seen["control_changes"] == {0: 1.0, 1: 2.0}


def test_a_clients_control_is_its_mean_gradient_along_the_path():
    # client 0 alone: from 0 by gradient (-1, 0) to .1, there gradient (-.9, 0)
    (result,) = rounds_of(SCAFFOLD(), FEDERATION, [[0]], LOCAL)
    after = result.training
    assert_close(after.client_states[0]["control"], vector(-0.95, 0.0))
    assert_close(after.rule_state.control, vector(-0.95 / 3, 0.0))  # divided by all three clients


def test_so_it_is_when_gradients_are_shifted():
    # c = (.1, 0) sent and c_1 = (0, .2) kept: client 1 has gradients 2 (w - (-1, 2)), and its steps
    # are against those minus c_1 plus c
    shift, w, gradients = vector(0.1, -0.2), vector(0.0, 0.0), []
    for _ in range(2):
        gradients.append(2 * (w - vector(-1.0, 2.0)))
        w = w - 0.1 * (gradients[-1] + shift)
    rule, training = SCAFFOLD(), start(SCAFFOLD(), FEDERATION)
    training = replace(
        training,
        rule_state=replace(training.rule_state, control=vector(0.1, 0.0)),
        client_states={1: {"control": vector(0.0, 0.2)}},
    )
    after = run_round(rule, FEDERATION, training, client_ids=[1], local=LOCAL).training
    assert_close(after.params, w)
    assert_close(after.client_states[1]["control"], sum(gradients) / 2)


def test_each_clients_own_number_of_steps_counts():
    # one epoch of minibatches of one: one, two and four steps; the control is a mean of gradients,
    # which for equal points are a (w - c), with w shrinking by 1 - lr a each step
    federation = quadratics(CLIENTS, num_examples=[1, 2, 4])
    (result,) = rounds_of(SCAFFOLD(), federation, [[0, 1, 2]], LocalSGD(lr=0.1, batch_size=1))
    for client, (steps, values) in enumerate(zip([1, 2, 4], CLIENTS, strict=True)):
        factors = [(1 - 0.1 * values["a"]) ** k for k in range(steps)]
        wanted = -values["a"] * sum(factors) / steps * vector(*values["c"])
        assert_close(result.training.client_states[client]["control"], wanted)


def test_an_absent_clients_control_stays():
    results = rounds_of(SCAFFOLD(), FEDERATION, [[0, 1, 2], [0, 1], [0, 1]], LOCAL)
    first, *later = (r.training.client_states[2]["control"] for r in results)
    assert all(torch.equal(first, control) for control in later)


def test_the_servers_control_is_the_mean_of_the_clients():
    # true from the start and kept by every round, whoever takes part
    results = rounds_of(SCAFFOLD(), FEDERATION, [[0, 1], [2], [1, 2], [0]], LOCAL)
    training = results[-1].training
    controls = torch.stack([training.client_states[i]["control"] for i in range(3)])
    assert_close(training.rule_state.control, controls.mean(0))


def test_it_ends_at_the_federations_optimum_where_averaging_does_not():
    # min of the sum of a/2 |w - c|^2: sum a c / sum a
    local = LocalSGD(lr=0.1, steps=10)
    optimum = vector(-1.0, 2.0) / 3.5
    ends = {}
    for rule in (SCAFFOLD(), Uniform()):
        ends[rule] = rounds_of(rule, FEDERATION, [[0, 1, 2]] * 30, local)[-1].training.params
    assert_close(ends[SCAFFOLD()], optimum, rtol=1e-6, atol=1e-6)
    assert (ends[Uniform()] - optimum).norm() > 0.1


def test_one_clients_first_round_is_plain_sgd():
    (with_it,), (without,) = (
        rounds_of(rule, FEDERATION, [[1]], LOCAL) for rule in (SCAFFOLD(), Uniform())
    )
    assert torch.equal(with_it.training.params, without.training.params)


def test_zero_updates_leave_model_and_controls():
    still = quadratics([{"a": 1.0, "c": [0.0, 0.0]}] * 2)
    results = rounds_of(SCAFFOLD(), still, [[0, 1]] * 3, LOCAL)
    assert [result.step_norm for result in results] == [0, 0, 0]
    assert not results[-1].training.rule_state.control.any()


def test_it_composes_with_fedpcds_server():
    rule = SCAFFOLD(server=FedPCD(tau=0.1, eps=0.0))
    opposed = quadratics([{"a": 1.0, "c": [4.0, 1.0]}, {"a": 1.0, "c": [-1.0, 0.5]}])
    results = rounds_of(rule, opposed, [[0, 1]] * 4, LOCAL)
    assert results[0].diagnostics["outcome"] == "projected"
    for result in results:
        assert result.diagnostics["outcome"] in ("average", "projected")
        assert min(result.diagnostics["progress_step"].values()) >= 0.1 - 1e-9
    controls = torch.stack([results[-1].training.client_states[i]["control"] for i in range(2)])
    assert_close(results[-1].training.rule_state.control, controls.mean(0))


def test_it_composes_with_fedproxs_clients_either_way():
    # both shift the same gradient, so the order does not matter
    ends = [
        rounds_of(rule, FEDERATION, [[0, 1, 2]] * 3, LOCAL)[-1].training.params
        for rule in (SCAFFOLD(server=FedProx(0.5)), FedProx(0.5, server=SCAFFOLD()))
    ]
    assert_close(*ends)


@pytest.mark.parametrize(
    "local", [LocalSGD(momentum=0.9), LocalSGD(weight_decay=0.1)], ids=["momentum", "weight decay"]
)
def test_other_local_steps_are_refused_before_the_first_round(local: LocalSGD):
    for rule in (SCAFFOLD(), FedProx(0.1, server=SCAFFOLD()), SCAFFOLD(server=FedProx(0.1))):
        with pytest.raises(ValueError, match="SCAFFOLD needs plain SGD"):
            check(rule, local)


def test_a_cohort_without_controls_names_what_is_missing():
    with pytest.raises(MissingFieldError, match="control_update"):
        SCAFFOLD().aggregate(SCAFFOLD().init(spec()), make_cohort([[1.0, 0.0]]))


@dataclass(frozen=True)
class Wrong:
    """Clients of SCAFFOLD of which the second one sends something else as its control's change."""

    inner: ControlVariate
    change: Callable[[Tensor], Tensor]

    @property
    def reports(self) -> tuple[str, ...]:
        return self.inner.reports

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        result = self.inner(job, model)
        if job.client_id != 1:
            return result
        changed = self.change(result.fields["control_update"])
        return replace(result, fields={**result.fields, "control_update": changed})


@dataclass(frozen=True)
class WithWrongClients(SCAFFOLD):
    change: Callable[[Tensor], Tensor] = abs

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        return {"train": Wrong(ControlVariate(local), self.change)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda control: control[:1], r"`control_update` must have shape \(2,\).*client 1"),
        (lambda control: control / 0, r"`control_update` contains NaN or infinity at client 1"),
    ],
    ids=["shape", "infinite"],
)
def test_a_control_that_cannot_be_used_names_its_client(change: Any, message: str):
    with pytest.raises(ContributionError, match=message):
        rounds_of(WithWrongClients(change=change), FEDERATION, [[0, 1]], LOCAL)
