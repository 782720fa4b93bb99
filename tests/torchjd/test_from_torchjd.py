"""TorchJD's aggregators as rules: their own numbers, our seeds, nothing kept."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from common import make_cohort, quadratic_federation
from fedaccord import (
    Cohort,
    FedAvg,
    FedHV,
    LocalSGD,
    NonFiniteError,
    Reply,
    Threads,
    load,
    save,
    simulate,
)

aggregation = pytest.importorskip("torchjd.aggregation")
torchjd = pytest.importorskip("fedaccord.torchjd")
FromTorchJD = torchjd.FromTorchJD

A = aggregation
AGGREGATORS = {
    "UPGrad": A.UPGrad,
    "MGDA": A.MGDA,
    "CAGrad": lambda: A.CAGrad(c=0.5),
    "PCGrad": A.PCGrad,
    "ConFIG": A.ConFIG,
    "IMTL-G": A.IMTLG,
    "AlignedMTL": A.AlignedMTL,
    "DualProj": A.DualProj,
    "GradDrop": A.GradDrop,
    "Random": A.Random,
    "Mean": A.Mean,
    "Sum": A.Sum,
    "TrimmedMean": lambda: A.TrimmedMean(trim_number=1),
    "Krum": lambda: A.Krum(n_byzantine=1),
    "FairGrad": lambda: A.FairGrad(alpha=1.0),
}
DRAWING = ("PCGrad", "GradDrop", "Random")


def made(name: str) -> object:
    try:
        return AGGREGATORS[name]()
    except ImportError as error:  # a solver of its own that is not installed
        pytest.skip(str(error))


every_aggregator = pytest.mark.parametrize("name", AGGREGATORS)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unit_rms(rows: Tensor) -> Tensor:
    return rows / rows.square().sum(1).mean().sqrt()


def step_of(aggregator: object, updates: object, **options: object) -> Tensor:
    cohort = make_cohort(updates, **options)
    return FromTorchJD(aggregator).aggregate(None, cohort).step


# the aggregator's own numbers


@pytest.mark.parametrize("name", [name for name in AGGREGATORS if name not in DRAWING])
def test_the_step_is_what_the_aggregator_subtracts(name: str):
    # asked directly: minus the aggregation of minus the updates, at root mean square length one,
    # where a method that is not homogeneous and one with thresholds give what the rule gives
    rows = unit_rms(normal(0, 5, 7))
    expected = -made(name)(-rows)
    torch.testing.assert_close(step_of(made(name), rows), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("aggregator", "weighting"),
    [
        (A.UPGrad, A.UPGradWeighting),
        (A.MGDA, A.MGDAWeighting),
        (A.IMTLG, A.IMTLGWeighting),
        (A.Mean, A.MeanWeighting),  # of the matrix
        (A.Sum, A.SumWeighting),
    ],
)
def test_a_weighting_makes_its_aggregators_step(
    aggregator: Callable[[], object], weighting: Callable[[], object]
):
    rows = normal(1, 4, 6)
    assert torch.equal(step_of(aggregator(), rows), step_of(weighting(), rows))


def test_the_mean_is_fedavg_for_clients_of_equal_size():
    cohort = make_cohort(normal(2, 4, 6))
    step = FromTorchJD(A.Mean()).aggregate(None, cohort).step
    torch.testing.assert_close(step, FedAvg().aggregate(None, cohort).step)


def test_numbers_of_examples_do_not_count():
    rows = normal(2, 4, 6)
    assert torch.equal(
        step_of(A.UPGrad(), rows), step_of(A.UPGrad(), rows, num_examples=[1, 9, 1, 9])
    )


def test_two_opposing_clients_get_upgrads_closed_form():
    # rows (1, 0) and (-1, 2): each projected off the other's conflict. The first loses its part
    # along the second, (1, 0) + (1/5)(-1, 2) = (.8, .4); the second its part along the first,
    # (0, 2). Their mean is (.4, 1.2). TorchJD adds 1e-4 to a Gramian of trace one.
    torch.testing.assert_close(
        step_of(A.UPGrad(), [[1.0, 0.0], [-1.0, 2.0]]),
        torch.tensor([0.4, 1.2]).double(),
        rtol=0,
        atol=2e-3,
    )


def test_two_opposing_clients_get_pcgrads_closed_form():
    # the same two corrections, added up; with two rows there is one order only
    step = step_of(A.PCGrad(), [[1.0, 0.0], [-1.0, 2.0]])
    torch.testing.assert_close(step, torch.tensor([0.8, 2.4]).double())


def test_mgda_is_the_shortest_combination():
    # (1, 0) and (0, 2): w = 4/5, 1/5 makes (.8, .4), orthogonal to the difference
    step = step_of(A.MGDA(), [[1.0, 0.0], [0.0, 2.0]])
    torch.testing.assert_close(step, torch.tensor([0.8, 0.4]).double())


# scale


@every_aggregator
@pytest.mark.parametrize("factor", [1e-6, 1e5])
def test_scaling_the_updates_scales_the_step(name: str, factor: float):
    rows = normal(3, 5, 7)
    one, many = step_of(made(name), rows), step_of(made(name), factor * rows)
    torch.testing.assert_close(many / factor, one, rtol=1e-6, atol=1e-9)


def test_small_updates_would_be_averaged_by_upgrad_itself():
    # why rows are scaled: below a squared length of 1e-4 TorchJD takes the Gramian for zero
    rows = 1e-3 * normal(3, 5, 7)
    torch.testing.assert_close(A.UPGrad()(rows), rows.mean(0))
    assert (step_of(A.UPGrad(), rows) - rows.mean(0)).norm() > 0.1 * rows.mean(0).norm()


# randomness


@pytest.mark.parametrize("name", DRAWING)
def test_the_global_generator_is_left_alone_and_does_not_matter(name: str):
    rows = normal(4, 5, 40)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = step_of(made(name), rows)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(step_of(made(name), rows), first)


@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize("change", [{"seed": 1}, {"round": 1}])
def test_seed_and_round_matter_to_an_aggregator_that_draws(name: str, change: dict[str, int]):
    cohort = make_cohort(normal(4, 5, 40))
    rule = FromTorchJD(made(name))
    steps = [rule.aggregate(None, c).step for c in (cohort, replace(cohort, **change))]
    assert not torch.equal(*steps)


# purity


@every_aggregator
def test_repeating_gives_the_same_bytes(name: str):
    rule, cohort = FromTorchJD(made(name)), make_cohort(normal(5, 5, 7))
    assert torch.equal(rule.aggregate(None, cohort).step, rule.aggregate(None, cohort).step)


@pytest.mark.parametrize(
    "stateful",
    [
        A.GradVac,
        A.PCD,
        A.ExcessMTL,
        lambda: A.CRMOGMWeighting(A.UPGradWeighting()),
        lambda: A.GramianWeightedAggregator(A.CRMOGMWeighting(A.UPGradWeighting())),
        torchjd.PCD,
    ],
)
def test_what_keeps_something_by_row_number_is_refused(stateful: Callable[[], object]):
    with pytest.raises(ValueError, match="must not keep anything from call to call"):
        FromTorchJD(stateful())


def test_what_an_aggregator_of_ones_own_keeps_does_not_reach_the_next_round():
    class Counting(A.Aggregator):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, matrix: Tensor, /) -> Tensor:
            self.calls += 1
            return matrix.sum(0) * self.calls

    rule, cohort = FromTorchJD(Counting()), make_cohort(normal(5, 3, 4))
    assert torch.equal(rule.aggregate(None, cohort).step, rule.aggregate(None, cohort).step)


def test_changing_the_aggregator_afterwards_does_not_change_the_rule():
    mine = A.MGDA()
    rule = FromTorchJD(mine)
    mine.max_iters = 1
    assert rule == FromTorchJD(A.MGDA())


def test_hooks_of_an_aggregator_are_run():
    aggregator = A.UPGrad()
    aggregator.register_forward_hook(lambda _module, _args, out: 2 * out)
    rows = normal(6, 4, 6)
    torch.testing.assert_close(step_of(aggregator, rows), 2 * step_of(A.UPGrad(), rows))


# a value


@every_aggregator
def test_a_rule_is_a_frozen_value(name: str):
    rule = FromTorchJD(made(name))
    assert pickle.loads(pickle.dumps(rule)) == rule == FromTorchJD(made(name))
    assert hash(rule) == hash(copy.deepcopy(rule))
    with pytest.raises(FrozenInstanceError):
        rule.server_lr = 2.0


@pytest.mark.parametrize(
    "other",
    [
        lambda: FromTorchJD(A.UPGrad(), server_lr=0.5),
        lambda: FromTorchJD(A.UPGrad(), dtype=None),
        lambda: FromTorchJD(A.UPGrad(pref_vector=torch.tensor([1.0, 2.0]))),
        lambda: FromTorchJD(A.UPGradWeighting()),
        lambda: FromTorchJD(A.Mean()),
    ],
)
def test_rules_that_differ_in_anything_differ(other: Callable[[], object]):
    assert other() != FromTorchJD(A.UPGrad())


class Holding(A.Aggregator):
    """An aggregator of one's own that holds something."""

    def __init__(self, held: object) -> None:
        super().__init__()
        self.held = held

    def forward(self, matrix: Tensor, /) -> Tensor:
        return matrix.sum(0)


@pytest.mark.parametrize(
    ("held", "other"),
    [
        (lambda: np.array([1.0, 2.0]), lambda: np.array([1.0, 3.0])),
        (lambda: partial(torch.clamp, min=1), lambda: partial(torch.clamp, min=2)),
        (lambda: {"a": [1, (2,)]}, lambda: {"a": [1, (3,)]}),
        (lambda: {1, 2}, lambda: {1, 3}),
        (lambda: torch.float32, lambda: torch.float64),
        (lambda: torch.sigmoid, lambda: torch.tanh),
    ],
)
def test_whatever_an_aggregator_holds_counts(
    held: Callable[[], object], other: Callable[[], object]
):
    rule = FromTorchJD(Holding(held()))
    assert rule == FromTorchJD(Holding(held())) != FromTorchJD(Holding(other()))
    assert hash(rule) == hash(copy.deepcopy(rule))


def test_it_prints_what_it_is_made_of():
    assert repr(FromTorchJD(A.MGDA(), server_lr=2.0)) == (
        "FromTorchJD(aggregator=MGDA(epsilon=0.001, max_iters=100), server_lr=2.0, dtype='float64')"
    )


def test_a_run_resumes_to_the_same_bytes(tmp_path):
    federation = quadratic_federation([[[1.0, 0.0]], [[0.0, 1.0]], [[-1.0, 0.5]]])
    options = {"local": LocalSGD(lr=0.1), "seed": 3}
    whole = [*simulate(FromTorchJD(A.PCGrad()), federation, rounds=4, **options)][-1]
    half = [*simulate(FromTorchJD(A.PCGrad()), federation, rounds=2, **options)][-1]
    save(tmp_path / "half", half.training)
    rule = FromTorchJD(A.PCGrad())
    half = load(tmp_path / "half", rule)
    resumed = [
        *simulate(rule, federation, rounds=4, training=half, executor=Threads(2), **options)
    ][-1]
    assert torch.equal(whole.training.params, resumed.training.params)


def test_it_makes_the_step_inside_another_rule():
    # FedHV weighs tasks and hands the updates on; with one task it changes nothing
    federation = quadratic_federation([[[1.0, 0.0]], [[0.0, 1.0]], [[-1.0, 0.5]]])
    inner = FromTorchJD(A.UPGrad())
    ends = [
        [*simulate(rule, federation, rounds=3, local=LocalSGD(lr=0.1))][-1].training.params
        for rule in (inner, FedHV((9.0,), server=inner))
    ]
    torch.testing.assert_close(*ends)


# degenerate rounds


@every_aggregator
def test_nobody_moving_is_no_step(name: str):
    cohort = make_cohort(torch.zeros(4, 3))
    step, _, seen = FromTorchJD(made(name)).aggregate(None, cohort)
    assert not step.any()
    assert seen["outcome"] == "all-zero"


@pytest.mark.parametrize("name", ["MGDA", "Mean", "Sum", "UPGrad", "DualProj"])
def test_opposite_clients_are_stationary_where_the_method_says_so(name: str):
    cohort = make_cohort([[0.1, 0.2], [-0.1, -0.2]])
    step, _, seen = FromTorchJD(made(name)).aggregate(None, cohort)
    assert seen["outcome"] == "stationary"
    assert not step.any()


@pytest.mark.parametrize("name", [n for n in AGGREGATORS if n not in ("TrimmedMean", "Krum")])
@pytest.mark.parametrize(
    "rows",
    [
        [[3.0, -1.0]],
        [[0.0, 0.0], [1.0, 2.0], [-0.5, 1.0]],
        [[1.0, 2.0]] * 3,
        [[1.0], [-2.0], [0.5]],
        [[1e30, 0.0], [1e-30, 1e30]],
    ],
)
def test_the_step_is_finite_and_fits_the_model(name: str, rows: list[list[float]]):
    for dtype in (torch.float32, torch.float64):
        cohort = make_cohort(torch.tensor(rows, dtype=torch.float64) / 1e15, dtype=dtype)
        step = FromTorchJD(made(name)).aggregate(None, cohort).step
        assert step.shape == cohort.updates.shape[1:]
        assert step.dtype == dtype
        assert torch.isfinite(step).all()


def test_a_zero_update_stops_mgda():
    # the shortest combination of a zero row and any others is the zero row
    cohort = make_cohort([[0.0, 0.0], [1.0, 2.0]])
    seen = FromTorchJD(A.MGDA()).aggregate(None, cohort).diagnostics
    assert seen["outcome"] == "stationary"
    assert seen["weights"][0] == 1


def test_an_answer_with_nan_is_an_error_that_names_the_aggregator():
    class Broken(A.Aggregator):
        def forward(self, matrix: Tensor, /) -> Tensor:
            return matrix.sum(0) * float("nan")

    with pytest.raises(NonFiniteError, match="Broken gave NaN"):
        step_of(Broken(), [[1.0, 0.0]])


def test_too_few_rows_are_the_aggregators_own_error():
    with pytest.raises(ValueError, match="at least 4 rows"):
        step_of(A.Krum(n_byzantine=1), [[1.0, 0.0]])


# what it tells


def test_weights_and_cosines_are_by_client_id():
    cohort = make_cohort([[1.0, 0.0], [0.0, 2.0]], client_ids=[4, 9])
    seen = FromTorchJD(A.MGDA()).aggregate(None, cohort).diagnostics
    assert seen["weights"] == {4: pytest.approx(0.8), 9: pytest.approx(0.2)}
    # (.8, .4) has length sqrt(.8)
    assert seen["cosines"] == {4: pytest.approx(0.8**0.5), 9: pytest.approx(0.4 / 0.8**0.5)}


def test_replies_may_come_in_any_order():
    replies = [Reply(i, 1, {"update": row}) for i, row in enumerate(normal(7, 4, 5))]
    rule = FromTorchJD(A.PCGrad())
    steps = [rule.aggregate(None, Cohort.stack(r)).step for r in (replies, replies[::-1])]
    assert torch.equal(*steps)


# arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"aggregator": "UPGrad"}, "`aggregator` must be an aggregator or a weighting"),
        ({"aggregator": A.UPGrad}, "`aggregator` must be an aggregator or a weighting"),
        ({"aggregator": A.Mean(), "server_lr": 0.0}, "`server_lr` must be positive"),
        ({"aggregator": A.Mean(), "dtype": "float16"}, "`dtype` must be"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        FromTorchJD(**arguments)


def test_a_weighting_of_nobody_knows_what_is_refused():
    composed = A.UPGradWeighting() << (lambda matrix: matrix @ matrix.T)
    with pytest.raises(ValueError, match="A weighting must say what it weighs"):
        FromTorchJD(composed)


def test_without_torchjd_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    for name in [n for n in sys.modules if n.startswith("fedaccord.torchjd")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchjd", None)
    monkeypatch.setitem(sys.modules, "torchjd.aggregation", None)
    with pytest.raises(ImportError, match=r"fedaccord\[torchjd\]"):
        importlib.import_module("fedaccord.torchjd")
