"""CRAFT: equal progress by share, the previous direction, blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from common import make_cohort
from fedaccord import CRAFT, Aggregation, Cohort, Layout, Reply, Spec
from fedaccord.rules._blocks import blocks_of, owners
from fedaccord.rules.craft import CRAFTState


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def aggregate(
    rule: CRAFT, rows: Any, state: CRAFTState | None = None, **options: Any
) -> Aggregation[CRAFTState]:
    layout = options.pop("layout", None)
    cohort = make_cohort(rows, **options)
    cohort = replace(cohort, layout=layout or cohort.layout)
    return rule.aggregate(state or CRAFTState(), cohort)


def normal(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def test_two_clients_by_hand():
    step = aggregate(CRAFT(server_lr=1.0), [[5.0, 0.0], [1.0, 1.0]]).step
    # progress 1/2 along (1, 0) and along (1, 1) / sqrt(2)
    assert_close(step, vector(0.5, math.sqrt(0.5) - 0.5))


def test_every_client_gets_its_share_of_progress():
    rows, state = normal(0, 4, 9), CRAFTState(normal(1, 9))
    _, after, seen = aggregate(CRAFT(), rows, state, num_examples=[1, 2, 3, 4])
    progress = (rows / rows.norm(dim=1, keepdim=True)) @ after.previous
    assert_close(progress, vector(0.1, 0.2, 0.3, 0.4))
    assert seen["largest_residual"] < 1e-12


def test_no_admissible_direction_is_nearer_to_the_last_one():
    rows, past = normal(0, 4, 9), normal(1, 9)
    direction = aggregate(CRAFT(), rows, CRAFTState(past)).state.previous
    # what was changed lies in the span of the updates
    change = direction - past / past.norm()
    inside = rows.T @ torch.linalg.lstsq(rows.T, change[:, None]).solution
    assert_close(inside[:, 0], change)


def test_only_the_last_directions_direction_counts():
    rows, past = normal(0, 3, 5), normal(1, 5)
    steps = [aggregate(CRAFT(), rows, CRAFTState(c * past)).step for c in (1e-6, 1.0, 1e6)]
    assert_close(steps[0], steps[1])
    assert_close(steps[2], steps[1])


def test_a_client_alone_in_a_block_moves_it_as_it_is():
    layout = Layout(("a", "b"), ((2,), (1,)))
    rows = [[3.0, 0.0, 0.0], [0.0, 4.0, 7.0]]
    step = aggregate(CRAFT(blocks="tensors", server_lr=1.0), rows, layout=layout).step
    # the first block has both clients with half the progress each, the second one client
    assert_close(step, vector(0.5, 0.5, 7.0))


def test_opposite_clients_get_the_least_squares_compromise():
    step = aggregate(CRAFT(server_lr=1.0), [[2.0, 0.0], [-1.0, 0.0]], num_examples=[3, 1]).step
    # as near as can be to progress 3/4 and 1/4 of x and -x: x = (3/4 - 1/4) / 2
    assert_close(step, vector(0.25, 0.0))


def test_opposite_clients_of_equal_share_leave_the_last_direction_without_their_part():
    rule, state = CRAFT(server_lr=1.0), CRAFTState(vector(3.0, 4.0))
    assert_close(aggregate(rule, [[2.0, 0.0], [-1.0, 0.0]], state).step, vector(0.0, 0.8))


def test_duplicates_share_one_constraint():
    step = aggregate(CRAFT(server_lr=1.0), [[1.0, 0.0]] * 3, num_examples=[1, 2, 3]).step
    assert_close(step, vector(1 / 3, 0.0))  # the mean of 1/6, 2/6, 3/6


def test_nearly_parallel_clients_of_unequal_share_make_a_long_direction():
    # nothing regularises it: progress .9 and .1 along directions 0.01 apart
    step = aggregate(CRAFT(server_lr=1.0), [[1.0, 0.0], [1.0, 0.01]], num_examples=[9, 1]).step
    assert step.norm() > 50


def test_a_cohort_without_examples_in_a_block_counts_equally():
    rows = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    step = aggregate(CRAFT(server_lr=1.0), rows, num_examples=[0, 0, 5]).step
    assert_close(step, vector(0.5, 0.5))


def test_the_shares_of_those_who_move_a_block_sum_to_one():
    rows = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    step = aggregate(CRAFT(server_lr=1.0), rows, num_examples=[3, 1, 4]).step
    assert_close(step, vector(0.75, 0.25))


def test_idle_blocks_forget_their_direction():
    layout = Layout(("a", "b"), ((1,), (1,)))
    rule, state = CRAFT(blocks="tensors"), CRAFTState(vector(1.0, 1.0))
    _, after, seen = aggregate(rule, [[0.0, 1.0], [0.0, 2.0]], state, layout=layout)
    assert after.previous[0] == 0
    assert seen["blocks_without_step"] == 1


class Residual(nn.Module):
    """The parts of a small residual network, with a token and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(3))
        self.conv1 = nn.Conv2d(1, 2, 3, bias=False)
        self.norm1 = nn.GroupNorm(1, 2)
        self.layer = nn.Sequential(nn.Conv2d(2, 2, 3), nn.GroupNorm(1, 2), nn.LayerNorm(2))
        self.norm = nn.LayerNorm(2)
        self.fc = nn.Linear(2, 2)


def test_owners_of_parameters():
    assert owners(Layout.of(Residual())) == (
        "token",
        "conv1",
        "conv1",
        "conv1",
        *["layer.0"] * 6,
        "conv1",  # a normalisation belongs to the last convolution among its siblings
        "conv1",
        "fc",
        "fc",
    )


def test_blocks_are_runs_of_one_owner():
    layout = Layout.of(Residual())
    cohort = replace(make_cohort(torch.ones(1, layout.dim)), layout=layout)
    sizes = [b.stop - b.start for b in blocks_of(cohort, "modules")]
    assert sizes == [3, 18 + 4, 36 + 2 + 4 + 4, 4, 6]
    assert len(blocks_of(cohort, "tensors")) == 14
    assert blocks_of(cohort, "model") == (slice(0, layout.dim),)


def test_normalisations_without_a_convolution_are_blocks():
    layout = Layout.of(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Linear(2, 1)))
    assert owners(layout) == ("0", "0", "1", "1", "2", "2")


def test_a_model_that_is_one_layer_is_one_block():
    assert owners(Layout.of(nn.Linear(2, 2))) == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"blocks": "layers"}, "`blocks` must be"), ({"server_lr": 0.0}, "`server_lr` must be")],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        CRAFT(**options)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("size", [200, 5000])
def test_large_blocks_and_coarse_dtypes_keep_their_clients(dtype: torch.dtype, size: int):
    # nearly orthogonal rows: each client's progress along its unit update is its share, 3/4 and 1/4
    rng = torch.Generator().manual_seed(0)
    rows = torch.randn(2, size, generator=rng).to(dtype)
    layout = Layout(("w.weight",), ((size,),))
    replies = [Reply(i, (3, 1)[i], {"update": row}) for i, row in enumerate(rows)]
    rule = CRAFT(server_lr=1.0)
    cohort = Cohort.stack(replies, layout=layout)
    step, _, seen = rule.aggregate(rule.init(Spec(layout, 2)), cohort)
    progress = rows.double() @ step.double() / rows.double().norm(dim=1)
    eps = torch.finfo(dtype).eps
    assert_close(progress, torch.tensor([0.75, 0.25]).double(), rtol=0, atol=10 * eps)
    assert seen["outcome"] == "moved"


@pytest.mark.parametrize(
    ("angle", "resolved"),
    # the floor in float64 is a singular value of 1e-7 of the largest: half the angle
    [(1e-5, True), (1e-6, True), (1e-8, False)],
)
def test_nearly_parallel_clients_are_told_apart_down_to_the_floor(angle: float, resolved: bool):
    rows = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]], dtype=torch.float64)
    layout = Layout(("w",), ((2,),))
    replies = [Reply(i, (3, 1)[i], {"update": row}) for i, row in enumerate(rows)]
    rule = CRAFT(server_lr=1.0)
    _, _, seen = rule.aggregate(rule.init(Spec(layout, 2)), Cohort.stack(replies, layout=layout))
    # where they are one direction to us, least squares: both get 1/2 instead of 3/4 and 1/4
    assert seen["largest_residual"] == pytest.approx(0.0 if resolved else 0.25, abs=1e-3)
