"""Rounds: what they do, what they record, and that a failed one changes nothing."""

from __future__ import annotations

import copy
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from common import Point, Rows, classification_federation, quadratic_federation, squared_distance
from fedaccord import (
    ClientFailedError,
    ClientResult,
    Cohort,
    EmptyRoundError,
    FedAvg,
    Federation,
    FedHV,
    FedPCD,
    Job,
    LocalSGD,
    MissingFieldError,
    NonFiniteError,
    Policy,
    Request,
    UncontrolledRandomnessError,
    UniformSampler,
    check,
    drive,
    run_round,
    simulate,
    start,
)

LOCAL = LocalSGD(lr=0.5, batch_size=8)
DROP = Policy(on_invalid="drop")
THREE = quadratic_federation([[[2.0, 0.0]], [[0.0, 4.0]], [[-2.0, 2.0]]])


def test_a_round_of_fedavg_is_the_weighted_mean_of_gradients():
    federation = quadratic_federation([[[2.0, 0.0]] * 3, [[0.0, 4.0]]])
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
    # gradients at 0 point to the centres; shares 3/4 and 1/4; half the way
    torch.testing.assert_close(result.training.params, torch.tensor([0.75, 0.5]).double())
    assert result.client_ids == (0, 1)
    assert result.step_norm == pytest.approx((0.75**2 + 0.5**2) ** 0.5)


def test_everybody_takes_part_without_a_sampler():
    (result,) = simulate(FedAvg(), THREE, rounds=1, local=LOCAL)
    assert result.client_ids == (0, 1, 2)


def test_rounds_is_the_total():
    first = list(simulate(FedAvg(), THREE, rounds=2, local=LOCAL))[-1].training
    rest = list(simulate(FedAvg(), THREE, rounds=3, local=LOCAL, training=first))
    assert [result.round for result in rest] == [2]


def test_missing_reports_are_found_before_the_first_round():
    class Silent:
        reports = ("update",)

        def __call__(self, job: Job, model: nn.Module) -> ClientResult:
            raise AssertionError("no round may run")

        def reporting(self, budget: object) -> Silent:
            return self

    with pytest.raises(MissingFieldError, match=r"FedHV needs \['task_loss'\].*Silent reports"):
        simulate(FedHV([1.0]), THREE, rounds=1, local=Silent())


def test_a_phase_without_an_algorithm_is_found_before_the_first_round():
    class TwoPhases(FedAvg):
        needs = types.MappingProxyType({"train": ("update",), "probe": ("loss",)})

    with pytest.raises(MissingFieldError, match="phase 'probe' but no client algorithm"):
        check(TwoPhases(), LOCAL)


def test_a_sampler_that_asks_too_much_is_found_before_the_first_round():
    with pytest.raises(ValueError, match=r"\[1, 3\]"):
        simulate(FedAvg(), THREE, rounds=1, sampler=UniformSampler(4))


@pytest.mark.parametrize(
    ("ids", "message"),
    [([], "at least one client"), ([0, 0], "distinct"), ([3], r"\[0, 3\)"), ([-1], r"\[0, 3\)")],
)
def test_impossible_ids_are_refused(ids: list[int], message: str):
    with pytest.raises(ValueError, match=message):
        run_round(FedAvg(), THREE, start(FedAvg(), THREE), client_ids=ids, local=LOCAL)


def spoiled(client: int, how: Any) -> Federation:
    """THREE, with one client whose data does something unwelcome."""

    class Spoiled(Rows):
        def batch(self, index: Tensor) -> tuple[Tensor, ...]:
            return how(super().batch(index))

    clients = list(THREE.clients)
    clients[client] = Spoiled(*clients[client].parts)
    return Federation(THREE.model, THREE.losses, clients)


def raises(batch: Any) -> Any:
    raise RuntimeError("the disk is gone")


def turns_nan(batch: Any) -> Any:
    return (batch[0] * float("nan"),)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        (raises, ClientFailedError, "Client 1 failed in round 0: RuntimeError: the disk is gone"),
        (turns_nan, NonFiniteError, "at client 1"),
    ],
)
def test_a_client_that_fails_stops_the_round_and_names_itself(how, error, message):
    rule, federation = FedPCD(), spoiled(1, how)
    training = start(rule, federation)
    before = copy.deepcopy(training.params)
    with pytest.raises(error, match=message):
        run_round(rule, federation, training, client_ids=range(3), local=LOCAL)
    assert torch.equal(training.params, before)
    assert training.round == 0
    run_round(rule, federation, training, client_ids=[0, 2], local=LOCAL)  # still good


@pytest.mark.parametrize("how", [raises, turns_nan])
@pytest.mark.parametrize(
    "rule", [FedAvg(), FedPCD(), FedHV([30.0])], ids=lambda r: type(r).__name__
)
def test_dropping_equals_a_round_without_the_client(how, rule):
    federation = spoiled(1, how)
    training = start(rule, federation)
    with_it = run_round(rule, federation, training, client_ids=range(3), local=LOCAL, policy=DROP)
    without = run_round(rule, federation, training, client_ids=[0, 2], local=LOCAL)
    assert torch.equal(with_it.training.params, without.training.params)
    assert list(with_it.failures) == [1]


def test_nobody_left_raises_or_skips():
    federation = quadratic_federation([[[1.0, 1.0]]])
    broken = Federation(
        federation.model, lambda m, b: squared_distance(m, b) * float("nan"), federation.clients
    )
    training = start(FedAvg(), broken)
    with pytest.raises(EmptyRoundError, match="Round 0"):
        run_round(FedAvg(), broken, training, client_ids=[0], local=LOCAL, policy=DROP)
    policy = Policy(on_invalid="drop", on_empty="skip")
    result = run_round(FedAvg(), broken, training, client_ids=[0], local=LOCAL, policy=policy)
    assert result.empty
    assert torch.equal(result.training.params, training.params)
    assert result.training.round == 1


def test_clients_without_examples_are_not_asked_but_listed():
    clients = [THREE.clients[0], Rows(torch.zeros(0, 2).double())]
    federation = Federation(Point, squared_distance, clients)
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
    assert result.without_examples == (1,)
    torch.testing.assert_close(result.training.params, torch.tensor([1.0, 0.0]).double())


def test_a_model_that_blows_up_at_the_step_is_refused_and_the_state_stays():
    rule = FedAvg(server_lr=1e308)
    training = start(rule, THREE)
    with pytest.raises(NonFiniteError, match="The model must stay finite"):
        run_round(rule, THREE, training, client_ids=range(3), local=LocalSGD(lr=1e10))
    assert not training.params.any()


class Counting(nn.Module):
    """A batch-norm layer, a frozen parameter and a buffer that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)
        self.linear = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.scratch += 1
        return self.norm(self.linear(x * self.frozen)) + self.scratch


def counting_losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    return model(batch[0]).square().mean().reshape(1)


def counting_federation(sizes: list[int], **options: Any) -> Federation:
    rng = torch.Generator().manual_seed(0)
    data = [Rows(torch.randn(size, 3, generator=rng) + i) for i, size in enumerate(sizes)]
    return Federation(Counting, counting_losses, data, **options)


def test_statistics_are_averaged_by_examples_and_counters_take_the_maximum():
    federation = counting_federation([4, 12])
    training = start(FedAvg(), federation)
    local = LocalSGD(lr=0.1, batch_size=4)
    both = run_round(FedAvg(), federation, training, client_ids=[0, 1], local=local).training
    alone = [
        run_round(FedAvg(), federation, training, client_ids=[c], local=local).training
        for c in (0, 1)
    ]
    expected = sum(
        share * state.buffers["norm.running_mean"]
        for share, state in zip((0.25, 0.75), alone, strict=True)
    )
    torch.testing.assert_close(both.buffers["norm.running_mean"], expected)
    counter = both.buffers["norm.num_batches_tracked"]
    assert counter.item() == 3  # the second client's three minibatches, not a mean or a sum
    assert counter.dtype == torch.int64
    assert counter.dim() == 0


def test_frozen_parameters_stay_as_they_were_initialised():
    federation = counting_federation([4, 4])
    training = start(FedAvg(), federation, seed=5)
    after = list(simulate(FedAvg(), federation, rounds=2, local=LOCAL, training=training))[-1]
    assert torch.equal(after.training.buffers["frozen"], training.buffers["frozen"])
    assert "frozen" not in federation.spec.layout.names


def test_local_buffers_stay_with_their_client():
    federation = counting_federation([4, 4], buffers="local")
    training = start(FedAvg(), federation)
    after = run_round(FedAvg(), federation, training, client_ids=[1], local=LOCAL).training
    assert after.buffers["norm.num_batches_tracked"] == 0
    assert after.client_buffers[1]["norm.num_batches_tracked"] == 1
    again = run_round(FedAvg(), federation, after, client_ids=[0, 1], local=LOCAL).training
    assert again.client_buffers[0]["norm.num_batches_tracked"] == 1
    assert again.client_buffers[1]["norm.num_batches_tracked"] == 2


def test_buffers_that_are_not_saved_do_not_leak_between_clients():
    federation = counting_federation([4, 4, 4])
    training = start(FedAvg(), federation)
    together = run_round(FedAvg(), federation, training, client_ids=[0, 1, 2], local=LOCAL)
    alone = run_round(FedAvg(), federation, training, client_ids=[2], local=LOCAL)
    weights = [
        run_round(FedAvg(), federation, training, client_ids=[c], local=LOCAL).training.params
        for c in (0, 1)
    ]
    mean = (sum(weights) + alone.training.params) / 3
    torch.testing.assert_close(together.training.params, mean)


def test_training_can_start_from_a_state_dict_and_ends_in_one():
    federation = counting_federation([4, 4])
    given = Counting().state_dict()
    training = start(FedAvg(), federation, state_dict=given)
    back = federation.module(training).state_dict()
    assert back.keys() == given.keys()
    assert all(torch.equal(back[name], given[name]) for name in given)


def test_the_seed_initialises_the_model_without_touching_the_global_generator():
    federation = classification_federation()
    before = torch.random.get_rng_state()
    a, b, c = (start(FedAvg(), federation, seed=seed).params for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_model_instance_is_refused():
    with pytest.raises(TypeError, match="must be a function that makes a new model"):
        Federation(Point(), squared_distance, THREE.clients)


def test_a_factory_that_gives_one_model_again_and_again_is_refused():
    template = Point()
    with pytest.raises(TypeError, match="gave the same one twice"):
        start(FedAvg(), Federation(lambda: template, squared_distance, THREE.clients))


@pytest.mark.parametrize("block", [torch.no_grad, torch.inference_mode])
def test_training_works_inside_a_block_without_gradients(block):
    (outside,) = simulate(FedPCD(), THREE, rounds=1, local=LOCAL)
    with block():
        (inside,) = simulate(FedPCD(), THREE, rounds=1, local=LOCAL)
    assert torch.equal(outside.training.params, inside.training.params)


def test_randomness_outside_the_seeds_reach_is_an_error():
    class Late(Rows):
        calls = 0

        def batch(self, index: Tensor) -> tuple[Tensor, ...]:
            self.calls += 1
            noise = torch.rand(1) if self.calls > 1 else torch.zeros(1)
            return (self.parts[0][index] + noise,)

    federation = Federation(Point, squared_distance, [Late(torch.zeros(9, 2).double())])
    with pytest.raises(UncontrolledRandomnessError):
        list(simulate(FedAvg(), federation, rounds=1, local=LocalSGD(batch_size=3)))


def test_drive_answers_every_request_and_closes_the_round():
    class Twice(FedAvg):
        def round(self, state, params):
            first = yield Request("probe", params)
            second = yield Request("train", params + first.updates[0])
            return self.aggregate(state, second)

    sent = []

    def answer(request: Request) -> Cohort:
        sent.append((request.phase, request.params.tolist()))
        return Cohort((0,), torch.ones(1), {"update": torch.ones(1, 2)})

    step, _, _ = drive(Twice().round(None, torch.zeros(2)), answer)
    assert sent == [("probe", [0, 0]), ("train", [1, 1])]
    assert step.tolist() == [1, 1]
