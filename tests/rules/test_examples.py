"""The worked examples of the specification, for every rule that exists."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from common import examples, flat_layout, make_cohort, spec
from fedaccord import FedAvg, FedHV, FedPCD, Spec, Uniform
from fedaccord.rules.fedhv import FedHVState


def ids(entries: list[Any]) -> list[str]:
    return [entry["name"] for entry in entries]


def close(found: Tensor, expected: list[float], example: Any) -> None:
    wanted = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=example["tolerance"])


@pytest.mark.parametrize("example", examples("fedavg"), ids=ids(examples("fedavg")))
def test_fedavg(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    updates = -torch.tensor(inputs["deltas"], dtype=torch.float64)
    cohort = make_cohort(updates, num_examples=inputs["n"])
    step, _, _ = FedAvg(server_lr=inputs["eta_g"]).aggregate(None, cohort)
    close(cohort.shares, expected["weights"], example)
    close(torch.tensor(inputs["theta"]).double() + step, expected["theta_next"], example)


@pytest.mark.parametrize("client_lr", [1.0, 0.05])
@pytest.mark.parametrize("example", examples("fedpcd"), ids=ids(examples("fedpcd")))
def test_fedpcd(example: Any, client_lr: float):
    inputs, expected = example["inputs"], example["expected"]
    options = {k: inputs[k] for k in ("infeasible", "normalize", "primary") if k in inputs}
    rule = FedPCD(tau=inputs["tau"], eps=inputs["eps"], history=1, **options)
    n, past = len(inputs["pseudo_gradients"]), inputs["history"]
    state = rule.init(Spec(flat_layout(len(inputs["pseudo_gradients"][0])), n + len(past)))
    if past:
        old = -client_lr * torch.tensor(past, dtype=torch.float64)
        before = make_cohort(
            old, client_ids=range(n, n + len(past)), client_lr=[client_lr] * len(past)
        )
        state = rule.aggregate(state, before).state
    cohort = make_cohort(
        -client_lr * torch.tensor(inputs["pseudo_gradients"], dtype=torch.float64),
        # the example's weights, as numbers of examples
        num_examples=[round(1000 * weight) for weight in inputs["weights"]],
        round=1,
        client_lr=[client_lr] * n,
    )
    step, _, seen = rule.aggregate(state, cohort)
    close(-step / client_lr, expected["d"], example)
    close(torch.tensor(list(seen["multipliers"].values())), expected["mu"], example)
    assert seen["active"] == tuple(expected["active"])
    assert (seen["feasibility_margin"] > 1e-7) == expected["feasible"]
    if expected["feasible"]:
        rows = torch.tensor([*inputs["pseudo_gradients"], *past], dtype=torch.float64)
        lengths = rows.norm(dim=1, keepdim=True) + inputs["eps"]
        rows = rows / (lengths if inputs.get("normalize", True) else 1)
        progress = (rows @ torch.tensor(expected["d_tilde"]).double()).tolist()
        close(torch.tensor(list(seen["progress_step"].values())), progress, example)
    if "d_tilde_angle_deg" in expected:
        angle = torch.atan2(-step[1], -step[0]).rad2deg().item()
        assert angle == pytest.approx(expected["d_tilde_angle_deg"], abs=1e-6)


def test_represented_clients_are_as_many_as_expected():
    (example,) = (e for e in examples("fedpcd_cache") if "rho" in e["inputs"])
    n, rho, window = (example["inputs"][key] for key in ("N", "rho", "H"))
    rule = FedPCD(history=window)
    state, counts = rule.init(spec(3, n)), []
    for round in range(200):
        rng = torch.Generator().manual_seed(round)
        chosen = sorted(torch.randperm(n, generator=rng)[: round_half_up(rho * n)].tolist())
        updates = torch.randn(len(chosen), 3, generator=rng).double() + 1
        _, state, seen = rule.aggregate(state, make_cohort(updates, client_ids=chosen, round=round))
        counts.append(seen["constrained_now"] + seen["constrained_cached"])
    full = torch.tensor(counts[window:], dtype=torch.float64)
    # N(1 - (1 - rho)^(H+1)) = 68.6; one round's standard deviation is about 2.7, rounds correlate
    # over the window, so the mean of 190 of them is known to about 0.5
    assert full.mean().item() == pytest.approx(example["expected"]["expected"], abs=1.5)


def round_half_up(value: float) -> int:
    return int(value + 0.5)


@pytest.mark.parametrize("example", examples("fedhv_weights"), ids=ids(examples("fedhv_weights")))
def test_fedhv_weights(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    rule = FedHV(inputs["reference"], floor=inputs["rho_clip"])
    cohort = make_cohort([[1.0, 0.0]], task_loss=[inputs["reports_mean"]])
    _, state, seen = rule.aggregate(rule.init(spec(num_tasks=2)), cohort)
    close(state.weights, expected["weights"], example)
    close(seen["slacks"].clamp(min=rule.floor), expected["slack"], example)
    if "phi" in expected:
        assert seen["log_hypervolume"] == pytest.approx(-expected["phi"], abs=1e-6)


@pytest.mark.parametrize("example", examples("fedhv_round"), ids=ids(examples("fedhv_round")))
def test_fedhv_round(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    rule = FedHV(inputs["reference"], floor=inputs["rho_clip"], server_lr=inputs["eta_g"])
    cohort = make_cohort(
        inputs["client_deltas_final_minus_initial"],
        num_examples=[1, 9],  # clients count equally, whatever they hold
        task_loss=inputs["client_reports"],
    )
    before = FedHVState(torch.tensor(inputs["w_used_this_round"]).double(), None)
    step, after, seen = rule.aggregate(before, cohort)
    close(torch.tensor(inputs["theta"]).double() + step, expected["theta_next"], example)
    close(seen["task_losses"], expected["reports_mean"], example)
    close(after.weights, expected["w_next_round"], example)


def test_uniform_is_the_mean_whatever_clients_hold():
    (example,) = examples("fedhv_round")
    inputs = example["inputs"]
    cohort = make_cohort(inputs["client_deltas_final_minus_initial"], num_examples=[1, 9])
    step, _, _ = Uniform(server_lr=inputs["eta_g"]).aggregate(None, cohort)
    close(torch.tensor(inputs["theta"]).double() + step, example["expected"]["theta_next"], example)
