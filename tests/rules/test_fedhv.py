"""FedHV: delay, composition, calibration."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from common import (
    Point,
    Rows,
    examples,
    make_cohort,
    quadratic_federation,
    spec,
    two_task_distances,
)
from fedaccord import (
    ClientResult,
    FedAvg,
    Federation,
    FedHV,
    FedPCD,
    Job,
    LocalSGD,
    Uniform,
    calibrate,
    simulate,
)

LOCAL = LocalSGD(lr=0.1, batch_size=8)


def two_tasks(*centres: tuple[float, float, float, float]) -> Federation:
    """Clients with one example each: where task 1 and where task 2 want the model."""
    clients = [
        Rows(torch.tensor([c[:2]]).double(), torch.tensor([c[2:]]).double()) for c in centres
    ]
    return Federation(Point, two_task_distances, clients, num_tasks=2)


FEDERATION = two_tasks((2.0, 0.0, 0.0, 1.0), (4.0, 0.0, 0.0, 3.0))


def test_weights_act_one_round_late():
    reference = (20.0, 10.0)
    first, second = simulate(FedHV(reference), FEDERATION, rounds=2, local=LOCAL)
    # round 0 trains on equal weights: minus the mean gradient at 0 is (.5 * 3, .5 * 2)
    torch.testing.assert_close(first.training.params, torch.tensor([0.15, 0.1]).double())
    # reports at 0: task 1 (2 + 8) / 2 = 5, task 2 (.5 + 4.5) / 2 = 2.5; inverse slacks 1/15, 1/7.5
    weights = torch.tensor([1 / 3, 2 / 3]).double()
    torch.testing.assert_close(second.diagnostics["task_weights"], weights)
    # the gradient at (.15, .1) with these weights: task 1 pulls to (3, 0), task 2 to (0, 2)
    pull = weights @ (torch.tensor([[3.0, 0], [0, 2]]).double() - first.training.params)
    torch.testing.assert_close(second.training.params, first.training.params + 0.1 * pull)


def test_several_floored_tasks_share_the_weight():
    rule = FedHV((1.0, 1.0, 9.0))
    cohort = make_cohort([[0.0]], task_loss=[[2.0, 5.0, 1.0]])
    _, state, seen = rule.aggregate(rule.init(spec(1, num_tasks=3)), cohort)
    # inverse slacks 1e6, 1e6, 1/8
    torch.testing.assert_close(
        state.weights[:2], torch.tensor([0.5, 0.5]).double(), atol=1e-6, rtol=0
    )
    assert seen["floored_tasks"] == (0, 1)
    assert seen["log_hypervolume"] == -math.inf


def test_one_task_has_all_the_weight():
    rule = FedHV([2.0])
    _, state, _ = rule.aggregate(rule.init(spec(1)), make_cohort([[1.0]], task_loss=[[0.5]]))
    assert state.weights.tolist() == [1.0]


def test_slack_is_of_the_mean_report_not_the_mean_of_slacks():
    rule = FedHV((2.0, 2.0))
    cohort = make_cohort([[0.0], [0.0]], task_loss=[[3.0, 1.0], [0.0, 1.0]])
    _, state, _ = rule.aggregate(rule.init(spec(1, num_tasks=2)), cohort)
    # slacks 2 - 1.5 and 2 - 1: weights proportional to 2 and 1
    torch.testing.assert_close(state.weights, torch.tensor([2 / 3, 1 / 3]).double())


def test_calibration_is_the_largest_mean_report_plus_the_margin():
    reports = [
        result.diagnostics["task_losses"]
        for result in simulate(Uniform(report="all"), FEDERATION, rounds=3, local=LOCAL, seed=4)
    ]
    assert calibrate(FEDERATION, rounds=3, margin=0.25, local=LOCAL, seeds=(4,)) == tuple(
        (torch.stack(reports).max(0).values + 0.25).tolist()
    )


class Scripted(LocalSGD):
    """Reports given losses, round by round."""

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        (example,) = examples("fedhv_calibration")
        reports = torch.tensor(example["inputs"]["calibration_reports"], dtype=torch.float64)
        fields = {"update": torch.zeros_like(job.params), "task_loss": reports[job.round]}
        return ClientResult(fields, len(job.data))


def test_the_calibration_example():
    (example,) = examples("fedhv_calibration")
    rounds, margin = len(example["inputs"]["calibration_reports"]), example["inputs"]["delta_r"]
    reference = calibrate(FEDERATION, rounds=rounds, margin=margin, local=Scripted())
    assert reference == pytest.approx(example["expected"]["reference"], abs=example["tolerance"])


def test_falling_losses_make_the_untrained_model_the_reference():
    federation = two_tasks((2.0, 0.0, 0.0, 1.0))
    # at 0: half of 4 and half of 1
    reference = calibrate(federation, rounds=5, margin=0.15, local=LOCAL)
    assert reference == pytest.approx((2.15, 0.65))


def test_fedpcd_composes_at_the_server():
    federation = two_tasks((3.0, 1.0, 3.0, 0.5), (4.0, -1.0, 4.0, 0.0), (-1.0, 1.5, -1.0, 1.0))
    rule = FedHV((30.0, 20.0), server=FedPCD(tau=0.1, eps=0.0))
    for result in simulate(rule, federation, rounds=3, local=LOCAL):
        seen = result.diagnostics
        # FedPCD's guarantee for the task-weighted updates, FedHV's weights from the reports
        assert seen["outcome"] == "projected"
        assert min(seen["progress_step"].values()) >= 0.1 - 1e-9
        inverse = 1 / (torch.tensor([30.0, 20.0]).double() - seen["task_losses"])
        torch.testing.assert_close(seen["next_task_weights"], inverse / inverse.sum())


def test_composition_keeps_the_servers_own_weights_of_clients():
    cohort = make_cohort([[1.0, 0.0], [0.0, 1.0]], num_examples=[3, 1], task_loss=[[1.0], [1.0]])
    composed, alone = FedHV([2.0], server=FedAvg()), FedAvg()
    step = composed.aggregate(composed.init(spec()), cohort).step
    assert torch.equal(step, alone.aggregate(None, cohort).step)


def test_fewer_examples_can_be_reported_on():
    assert FedHV([1.0], report=2).client_algorithms(LOCAL)["train"].report == 2


def test_the_reference_needs_one_number_a_task():
    with pytest.raises(ValueError, match="each of 2 tasks. Got 1"):
        FedHV([1.0]).init(spec(num_tasks=2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"reference": []}, "`reference` must hold finite numbers"),
        ({"reference": [float("inf")]}, "`reference` must hold finite numbers"),
        ({"reference": [1.0], "floor": 0.0}, "`floor` must be positive"),
        ({"reference": [1.0], "server_lr": -1.0}, "`server_lr` must be positive"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        FedHV(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"rounds": 0}, "`rounds`"), ({"margin": 0.0}, "`margin`"), ({"seeds": ()}, "`seeds`")],
)
def test_impossible_calibrations_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        calibrate(quadratic_federation([[[1.0, 0.0]]]), **arguments)
