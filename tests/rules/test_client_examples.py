"""The worked examples of the specification for rules that change the clients or wrap others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from common import examples, make_cohort, spec
from fedaccord import (
    GIFAIR,
    SCAFFOLD,
    TERM,
    Ditto,
    FedAvg,
    FedDyn,
    FedProx,
    LocalSGD,
    ServerAdam,
    ServerYogi,
)
from fedaccord.clients import proportional_loss
from rules.quadratics import quadratics, rounds_of


def ids(entries: list[Any]) -> list[str]:
    return [entry["name"] for entry in entries]


def one(algorithm: str) -> Any:
    (example,) = examples(algorithm)
    return example


def close(found: Tensor, expected: Any, example: Any) -> None:
    wanted = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=example["tolerance"])


def weights_of(seen: Any) -> Tensor:
    return torch.tensor(list(seen["weights"].values()))


@pytest.mark.parametrize("example", examples("term"), ids=ids(examples("term")))
def test_term(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    updates = -torch.tensor(inputs["deltas"], dtype=torch.float64)
    cohort = make_cohort(updates, loss=inputs["losses_at_theta"])
    rule = TERM(inputs["t"], legacy="estimate" in expected)
    step, state, seen = rule.aggregate(rule.init(spec()), cohort)
    if rule.legacy:
        assert state.estimate == pytest.approx(expected["estimate"], abs=example["tolerance"])
        # the example's weights are before the trainer divides by the number of clients again
        close(3 * weights_of(seen), expected["weights"], example)
    else:
        close(weights_of(seen), expected["weights"], example)
    close(-step, expected["update"], example)


def test_gifair():
    example = one("gifair")
    cohort = make_cohort(torch.eye(3), loss=example["inputs"]["losses_at_theta"])
    step, _, seen = GIFAIR(example["inputs"]["coeff"]).aggregate(None, cohort)
    close(weights_of(seen), example["expected"]["weights"], example)
    close(step, example["expected"]["weights"], example)  # the updates are unit vectors


@pytest.mark.parametrize("example", examples("propfair"), ids=ids(examples("propfair")))
def test_propfair(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    losses = torch.tensor(inputs["losses"], dtype=torch.float64, requires_grad=True)
    options = {name: inputs[name] for name in ("base", "epsilon", "huber")}
    values = proportional_loss(losses, **options)
    close(values.detach(), expected["values"], example)
    (slopes,) = torch.autograd.grad(values.sum(), losses)
    close(slopes, expected["slopes"], example)


@pytest.mark.parametrize(("name", "rule"), [("adam", ServerAdam), ("yogi", ServerYogi)])
def test_fedopt(name: str, rule: Any):
    example = one("fedopt")
    inputs = example["inputs"]
    options = {key: inputs[key] for key in ("beta1", "beta2", "tau", "v0")}
    wrapped = rule(FedAvg(), server_lr=inputs["eta_g"], **options)
    state, params = wrapped.init(spec()), torch.tensor(inputs["theta"], dtype=torch.float64)
    for delta, wanted in zip(
        inputs["aggregated_deltas_theta_minus_local"], example["expected"]["rounds"], strict=True
    ):
        cohort = make_cohort(-torch.tensor([delta], dtype=torch.float64))
        step, state, _ = wrapped.aggregate(state, cohort)
        params = params + step
        close(params, wanted[name], example)


def test_fedprox():
    example = one("fedprox")
    inputs, expected = example["inputs"], example["expected"]
    local = LocalSGD(lr=inputs["eta_l"], steps=inputs["K"])
    rule, federation = FedProx(inputs["mu"]), quadratics(inputs["clients"])
    for client, wanted in enumerate(expected["local_models"]):
        (alone,) = rounds_of(rule, federation, [[client]], local)
        close(alone.training.params, wanted, example)
    (result,) = rounds_of(rule, federation, [[0, 1]], local)
    close(result.training.params, expected["theta_next"], example)


def test_scaffold():
    example = one("scaffold")
    inputs = example["inputs"]
    local = LocalSGD(lr=inputs["eta_l"], steps=inputs["K"])
    rule = SCAFFOLD(server_lr=inputs["eta_g"])
    results = rounds_of(rule, quadratics(inputs["clients"]), [[0, 1]] * inputs["rounds"], local)
    for result, wanted in zip(results, example["expected"]["rounds"], strict=True):
        close(result.training.params, wanted["theta"], example)
        close(result.training.rule_state.control, wanted["c"], example)


def test_feddyn():
    example = one("feddyn")
    inputs = example["inputs"]
    local = LocalSGD(lr=inputs["eta_l"], steps=inputs["K"])
    rule, federation = FedDyn(inputs["alpha"]), quadratics(inputs["clients"])
    results = rounds_of(rule, federation, [[0, 1]] * inputs["rounds"], local)
    for result, wanted in zip(results, example["expected"]["rounds"], strict=True):
        close(result.training.params, wanted["theta"], example)
        close(result.training.rule_state.h, wanted["h"], example)


def test_ditto():
    example = one("ditto")
    inputs = example["inputs"]
    local = LocalSGD(lr=inputs["eta"], steps=inputs["local_iters"])
    rule, federation = Ditto(inputs["lam"]), quadratics(inputs["clients"])
    results = rounds_of(rule, federation, [[0, 1]] * inputs["rounds"], local)
    for result, wanted in zip(results, example["expected"]["rounds"], strict=True):
        close(result.training.params, wanted["theta"], example)
        for client, personal in enumerate(wanted["personal"]):
            close(result.training.client_states[client]["personal"], personal, example)
