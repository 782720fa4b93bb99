"""The worked examples of the specification, for every rule that exists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from common import examples, flat_layout, make_cohort, spec
from fedaccord import (
    AFL,
    CRAFT,
    FedAvg,
    FedFV,
    FedHEAL,
    FedHV,
    FedLF,
    FedMGDAPlus,
    FedPCD,
    FedPW,
    Layout,
    QFedAvg,
    Spec,
    Uniform,
)
from fedaccord.rules.afl import AFLState
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


@pytest.mark.parametrize("example", examples("afl"), ids=ids(examples("afl")))
def test_afl(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    cohort = make_cohort(
        -torch.tensor(inputs["deltas"], dtype=torch.float64), loss=inputs["losses_at_theta"]
    )
    before = AFLState(torch.tensor(inputs["lambda_"], dtype=torch.float64), 0)
    step, after, _ = AFL(inputs["lr_lambda"]).aggregate(before, cohort)
    close(-step, expected["aggregate"], example)
    close(torch.tensor(inputs["theta"]).double() + step, expected["theta_next"], example)
    close(after.weights, expected["lambda_next"], example)


@pytest.mark.parametrize("example", examples("qfedavg"), ids=ids(examples("qfedavg")))
def test_qfedavg(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    deltas = torch.tensor(inputs["deltas"], dtype=torch.float64)
    losses = inputs["losses_at_theta"]
    cohort = make_cohort(-deltas, loss=losses, client_lr=[inputs["eta_l"]] * len(deltas))
    step, _, seen = QFedAvg(inputs["q"]).aggregate(None, cohort)
    close(-step, expected["update"], example)
    close(torch.tensor(inputs["theta"]).double() + step, expected["theta_next"], example)
    # the weights are F^q / (eta_l sum h)
    powers = torch.tensor(losses).double() ** inputs["q"]
    wanted = powers / inputs["eta_l"] / sum(expected["h"])
    close(torch.tensor(list(seen["weights"].values())), wanted.tolist(), example)


@pytest.mark.parametrize("example", examples("fedmgda_plus"), ids=ids(examples("fedmgda_plus")))
def test_fedmgda_plus(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    deltas = torch.tensor(inputs["deltas"], dtype=torch.float64)
    rule = FedMGDAPlus(inputs["epsilon"], server_lr=inputs["eta_g"])
    step, _, seen = rule.aggregate(None, make_cohort(-deltas))
    close(torch.tensor(list(seen["weights"].values())), expected["lambda_star"], example)
    close(-step, expected["direction"], example)
    aligned = min(seen["cosines"].values()) * seen["direction_length"]
    assert aligned == pytest.approx(expected["min_alignment"], abs=example["tolerance"])


@pytest.mark.parametrize("window", ["original", "shifted"])
@pytest.mark.parametrize("example", examples("fedfv"), ids=ids(examples("fedfv")))
def test_fedfv(example: Any, window: Any):
    inputs, expected = example["inputs"], example["expected"]
    variant = {"original": "updates", "shifted": "updates_flgo_variant"}[window]
    rule = FedFV(alpha=inputs["alpha"], tau=inputs["tau"], window=window)
    state = rule.init(spec(len(inputs["rounds"][0]["deltas"][0]), inputs["num_clients"]))
    for t, (round, wanted) in enumerate(
        zip(inputs["rounds"], expected.get(variant, expected["updates"]), strict=True)
    ):
        cohort = make_cohort(
            -torch.tensor(round["deltas"], dtype=torch.float64),
            client_ids=round["clients"],
            loss=round["losses_at_theta"],
            round=t,
        )
        step, state, _ = rule.aggregate(state, cohort)
        close(-step, wanted, example)


@pytest.mark.parametrize("example", examples("fedlf"), ids=ids(examples("fedlf")))
def test_fedlf(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    rule = FedLF(merge=False)
    layout = layout_of(inputs["layers"])
    n, past = len(inputs["gradients"]), inputs["history"]
    state = rule.init(Spec(layout, n + len(past)))
    if past:
        before = make_cohort(
            -torch.tensor(past, dtype=torch.float64),
            client_ids=range(n, n + len(past)),
            loss=[1.0] * len(past),
        )
        state = rule.aggregate(state, replace(before, layout=layout)).state
    cohort = make_cohort(
        -torch.tensor(inputs["gradients"], dtype=torch.float64),
        loss=inputs["losses_at_theta"],
        round=1,
    )
    step, _, seen = rule.aggregate(state, replace(cohort, layout=layout))
    close(torch.tensor(list(seen["fairness"].values())), expected["h"], example)
    close(-step, expected["d_scaled"], example)
    close(-step * seen["direction_length"] / step.norm(), expected["d_raw"], example)
    assert len(seen["absent_clients"]) == len(past)


@pytest.mark.parametrize("example", examples("fedheal"), ids=ids(examples("fedheal")))
def test_fedheal(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    rule = FedHEAL(threshold=inputs["threshold"], beta=inputs["beta"])
    layout = layout_of(inputs["tensors"])
    state = rule.init(Spec(layout, 2))
    for t, (deltas, wanted) in enumerate(
        zip(inputs["rounds_deltas"], expected["rounds"], strict=True)
    ):
        cohort = make_cohort(-torch.tensor(deltas, dtype=torch.float64), round=t)
        step, state, seen = rule.aggregate(state, replace(cohort, layout=layout))
        close(-step, wanted["update"], example)
        close(torch.tensor(list(seen["weights"].values())), wanted["weights"], example)
        raw = torch.tensor([habit.weight for habit in state.clients.values()])
        close(raw, wanted["raw_weights"], example)
        masked = torch.tensor(list(seen["masked"].values()))
        close(1 - masked, torch.tensor(wanted["masks"]).mean(1).tolist(), example)


@pytest.mark.parametrize("example", examples("fedpw"), ids=ids(examples("fedpw")))
def test_fedpw(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    rule = FedPW(beta=inputs["beta"], drop=inputs["avg_drop_rate"])
    deltas = torch.tensor(inputs["rounds_deltas"], dtype=torch.float64)
    state = rule.init(Spec(flat_layout(deltas.shape[2]), deltas.shape[1]))
    for t, wanted in enumerate(expected["rounds"]):
        cohort = make_cohort(-deltas[t], train_loss=inputs["rounds_losses"][t], round=t)
        step, state, seen = rule.aggregate(state, cohort)
        close(-step, wanted["update"], example)
        for name, key in (
            ("weights", "weights"),
            ("loss_weights", "p_loss"),
            ("product_weights", "p_dot"),
            ("drop_rates", "drop_rates"),
        ):
            close(torch.tensor(list(seen[name].values())), wanted[key], example)


@pytest.mark.parametrize("example", examples("craft"), ids=ids(examples("craft")))
def test_craft(example: Any):
    inputs, expected = example["inputs"], example["expected"]
    rule = CRAFT(server_lr=inputs["server_lr"])
    layout = layout_of(inputs["groups"])
    state = rule.init(Spec(layout, 2))
    for t, (round, wanted) in enumerate(zip(inputs["rounds"], expected["rounds"], strict=True)):
        cohort = make_cohort(
            -torch.tensor(round["deltas"], dtype=torch.float64),
            client_ids=round["clients"],
            # the example's weights, as numbers of examples
            num_examples=[int(100 * rho + 0.5) for rho in inputs["rho"]],
            round=t,
        )
        step, state, _ = rule.aggregate(state, replace(cohort, layout=layout))
        close(-step, wanted["theta_step"], example)
        close(-state.previous, wanted["direction"], example)


def layout_of(groups: list[list[int]]) -> Layout:
    """One vector parameter for each group of neighbouring entries."""
    return Layout(tuple(f"w{i}" for i in range(len(groups))), tuple((len(g),) for g in groups))
