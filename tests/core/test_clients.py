"""Local training and reports."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from common import Point, Rows, squared_distance, two_task_distances
from fedaccord import Job, Layout, LocalSGD, LocalTraining
from fedaccord.federation import build


def job(points: Tensor, **changes: object) -> Job:
    values: dict[str, object] = {
        "client_id": 0,
        "layout": Layout.of(Point()),
        "losses": squared_distance,
        "data": Rows(points),
        "params": torch.zeros(2, dtype=torch.float64),
        "payload": {},
        "seed": 1,
    }
    return Job(**{**values, **changes})


POINTS = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 6.0]], dtype=torch.float64)


def test_one_full_batch_step_is_lr_times_the_gradient():
    result = LocalSGD(lr=0.1, batch_size=3)(job(POINTS), Point())
    # gradient at 0 of half the mean squared distance: minus the mean point (2, 2)
    torch.testing.assert_close(result.fields["update"], torch.tensor([0.2, 0.2]).double())


def test_momentum_and_weight_decay_follow_their_recursion():
    local = LocalSGD(lr=0.1, momentum=0.5, weight_decay=0.2, batch_size=3, steps=2)
    update = local(job(POINTS), Point()).fields["update"]
    # g = w - 2 + 0.2 w; v1 = -2, w1 = 0.2; v2 = 0.5 v1 + (1.2 * 0.2 - 2) = -2.76; w2 = 0.476
    torch.testing.assert_close(update, torch.full((2,), 0.476).double())


def test_the_rate_decays_with_the_round():
    local = LocalSGD(lr=0.1, lr_decay=0.5, batch_size=3)
    fields = local(job(POINTS, round=2), Point()).fields
    assert fields["client_lr"] == 0.025
    torch.testing.assert_close(fields["update"], torch.full((2,), 0.05).double())


def test_the_last_partial_minibatch_is_kept():
    local = LocalSGD(lr=0.1, batch_size=2)
    assert [len(b) for b in local._minibatches(3, torch.Generator())] == [2, 1]


@pytest.mark.parametrize(("size", "sizes"), [(3, [2]), (1, [1]), (4, [2, 2])])
def test_dropping_the_last_never_leaves_a_client_without_any(size: int, sizes: list[int]):
    local = LocalSGD(batch_size=2, drop_last=True)
    assert [len(b) for b in local._minibatches(size, torch.Generator())] == sizes


def test_steps_restart_passes_until_there_are_enough():
    minibatches = list(LocalSGD(batch_size=2, steps=5)._minibatches(4, torch.Generator()))
    assert len(minibatches) == 5
    assert sorted(torch.cat(minibatches[:2]).tolist()) == [0, 1, 2, 3]
    assert sorted(torch.cat(minibatches[2:4]).tolist()) == [0, 1, 2, 3]


def test_every_epoch_visits_every_example_once():
    minibatches = list(LocalSGD(batch_size=2, epochs=3)._minibatches(5, torch.Generator()))
    assert torch.cat(minibatches).bincount().tolist() == [3] * 5


def test_reports_are_losses_of_the_received_model():
    params = torch.tensor([1.0, 1.0]).double()
    fields = LocalSGD(lr=0.1, report="all")(job(POINTS, params=params), Point()).fields
    # squared distances from (1, 1): 1, 5, 26; half their mean is 32 / 6
    torch.testing.assert_close(fields["task_loss"], torch.tensor([32 / 6]).double())
    torch.testing.assert_close(fields["loss"], torch.tensor(32 / 6).double())


@pytest.mark.parametrize("budget", [1, 2, "all"])
def test_reporting_does_not_change_training(budget: object):
    plain = LocalSGD(lr=0.1, batch_size=1)
    a, b = (local(job(POINTS), Point()) for local in (plain, plain.reporting(budget)))
    assert torch.equal(a.fields["update"], b.fields["update"])


def test_a_report_of_b_minibatches_is_a_mean_over_distinct_examples():
    points = torch.arange(8.0).double()[:, None].repeat(1, 2)
    seen: list[Tensor] = []

    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        if not model.training:
            seen.append(batch[0][:, 0])
        return squared_distance(model, batch)

    LocalSGD(batch_size=3, report=2)(job(points, losses=losses), Point())
    assert [len(part) for part in seen] == [3, 3]
    assert len(torch.cat(seen).unique()) == 6


def test_reports_are_made_in_evaluation_mode():
    class Noisy(Point):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.9)

    def losses(model: Noisy, batch: tuple[Tensor, ...]) -> Tensor:
        return model.drop(torch.ones(100)).mean().reshape(1).double() + model.w.sum() * 0

    fields = LocalSGD(report="all")(job(POINTS, losses=losses), Noisy()).fields
    assert fields["task_loss"].item() == pytest.approx(1)  # nothing dropped, nothing scaled


def test_task_weights_weigh_the_gradients():
    data = Rows(torch.tensor([[2.0, 0.0]]).double(), torch.tensor([[0.0, 4.0]]).double())
    weights = torch.tensor([0.75, 0.25]).double()
    task_job = job(
        POINTS,
        losses=two_task_distances,
        data=data,
        num_tasks=2,
        payload={"task_weights": weights},
    )
    fields = LocalSGD(lr=0.1, report="all")(task_job, Point()).fields
    # minus the gradient at 0: .75 (2, 0) + .25 (0, 4); losses 2 and 8
    torch.testing.assert_close(fields["update"], torch.tensor([0.15, 0.1]).double())
    torch.testing.assert_close(fields["loss"], torch.tensor(0.75 * 2 + 0.25 * 8).double())


def test_equal_task_weights_are_the_default():
    data = Rows(torch.tensor([[2.0, 0.0]]).double(), torch.tensor([[0.0, 4.0]]).double())
    fields = LocalSGD(lr=0.1)(
        job(POINTS, losses=two_task_distances, data=data, num_tasks=2), Point()
    ).fields
    torch.testing.assert_close(fields["update"], torch.tensor([0.1, 0.2]).double())


def test_a_loss_of_the_wrong_shape_says_what_to_write():
    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return squared_distance(model, batch)[0]

    with pytest.raises(ValueError, match=r"shape \(1,\). Got \(\).*loss.reshape\(1\)"):
        LocalSGD()(job(POINTS, losses=losses), Point())


def test_training_starts_afresh_whatever_the_scratch_model_holds():
    scratch = Point(start=9.0)
    scratch.w.grad = torch.ones(2).double()
    a, b = (LocalSGD(lr=0.1)(job(POINTS), model) for model in (scratch, Point()))
    assert torch.equal(a.fields["update"], b.fields["update"])


def test_a_correction_is_added_to_the_gradient():
    pull = 2.0

    def proximal(model: nn.Module) -> None:
        model.w.grad += pull * (model.w.detach() - 1)

    descent = LocalSGD(lr=0.1, batch_size=3).descend(job(POINTS), Point(), correct=proximal)
    # gradient at 0: -(2, 2) - pull (1, 1)
    torch.testing.assert_close(descent.params, torch.full((2,), 0.4).double())


def test_another_objective_replaces_the_weighted_sum():
    descent = LocalSGD(lr=0.1, batch_size=3).descend(
        job(POINTS), Point(), objective=lambda losses: 3 * losses[0]
    )
    torch.testing.assert_close(descent.params, torch.full((2,), 0.6).double())
    assert descent.steps == 1


def test_frozen_parameters_stay_put():
    def model() -> nn.Module:
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        net[0].requires_grad_(False)
        return net

    net = build(model, 0)
    before = [p.clone() for p in net[0].parameters()]
    data = Rows(torch.randn(6, 2, generator=torch.Generator().manual_seed(0)))

    def losses(module: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return module(batch[0]).square().mean().reshape(1)

    layout = Layout.of(net)
    LocalSGD()(Job(0, layout, losses, data, layout.flatten(net), {}, 1), net)
    assert all(torch.equal(a, b) for a, b in zip(before, net[0].parameters(), strict=True))


def test_local_sgd_is_local_training():
    assert isinstance(LocalSGD(), LocalTraining)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lr": 0}, "`lr` must be positive"),
        ({"lr": float("nan")}, "`lr` must be positive"),
        ({"momentum": 1}, r"`momentum` must be in \[0, 1\)"),
        ({"weight_decay": -1}, "`weight_decay` must be at least 0"),
        ({"batch_size": 0}, "`batch_size` must be an integer of at least 1"),
        ({"epochs": 0}, "`epochs` must be an integer of at least 1"),
        ({"epochs": 1, "steps": 1}, "Give `epochs` or `steps`, not both"),
        ({"lr_decay": 1.5}, r"`lr_decay` must be in \(0, 1\]"),
        ({"report": "some"}, "`report` must be 'all'"),
        ({"report": 0}, "`report` must be 'all'"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        LocalSGD(**arguments)
