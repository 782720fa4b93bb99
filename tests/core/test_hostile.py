"""Things that went wrong when somebody tried to break the core, and must not again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from common import (
    Point,
    Rows,
    classification_federation,
    make_cohort,
    quadratic_federation,
    spec,
    squared_distance,
)
from fedaccord import (
    Aggregation,
    CheckpointError,
    ClientResult,
    Cohort,
    FedAvg,
    Federation,
    FedHV,
    FedPCD,
    History,
    LocalSGD,
    MalformedReplyError,
    NonFiniteError,
    Policy,
    Threads,
    TrainingState,
    UncontrolledRandomnessError,
    Uniform,
    load,
    run_round,
    save,
    save_model,
    simulate,
    start,
)
from fedaccord.models import multi_task_nll

TWO = quadratic_federation([[[1.0, 0.0]], [[0.0, 1.0]]])
LOCAL = LocalSGD(lr=0.1)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def first(rule: FedPCD, updates: Tensor, **options: Any) -> Aggregation[Any]:
    cohort = make_cohort(updates, dtype=updates.dtype, **options)
    return rule.aggregate(rule.init(spec(updates.shape[1])), cohort)


# rounding noise is no direction


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opposite_clients_with_tau_zero_collapse_in_every_dtype(seed: int, dtype: torch.dtype):
    u = normal(seed, 1000).to(dtype)
    step, _, seen = first(FedPCD(tau=0.0), torch.stack([u, -0.3 * u]))
    assert seen["outcome"] == "collapsed"
    assert not step.any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_rounded_history_does_not_turn_opposite_clients_into_a_direction(dtype: str):
    rule = FedPCD(history_dtype=dtype)
    u = normal(0, 1000)
    state = rule.aggregate(rule.init(spec(1000)), make_cohort(u[None], dtype=torch.float32)).state
    back = make_cohort(-0.37 * u[None], client_ids=[1], round=1, dtype=torch.float32)
    step, _, seen = rule.aggregate(state, back)
    assert seen["outcome"] == "infeasible"
    torch.testing.assert_close(step, -0.37 * u)  # the average of the one client that is there


def test_an_update_too_small_for_the_historys_dtype_is_an_error():
    tiny = make_cohort([[-1e-8, 1e-9]])
    with pytest.raises(NonFiniteError, match="client 0 in round 0 is too large or too small"):
        History(dtype=torch.float16).record(tiny)


def test_without_primary_nobody_asking_for_more_is_no_step():
    rule = FedPCD(tau=(0.0, 0.0, 0.5), primary=False)
    cohort = make_cohort([[3.0, 0.0], [-1.0, 1.0]])
    step, _, seen = rule.aggregate(rule.init(spec(num_clients=3)), cohort)
    assert seen["outcome"] == "collapsed"
    assert not step.any()


def test_a_small_average_of_coarse_numbers_is_still_an_average():
    updates = torch.tensor([[1.0, 0.005], [-1.0, 0.005]], dtype=torch.bfloat16)
    _, _, seen = first(FedPCD(tau=0.0), updates)
    assert seen["outcome"] != "no-average"


# a client cannot reach what is not its own


class Vectors:
    """Trains the way `vector_to_parameters` does: on views of what it received."""

    reports = ("update",)

    def reporting(self, budget: object, /) -> Vectors:
        return self

    def __call__(self, job: Any, model: nn.Module, /) -> ClientResult:
        nn.utils.vector_to_parameters(job.params, model.parameters())
        before = job.params.clone()
        for parameter in model.parameters():
            parameter.data.add_(1.0)
        after = nn.utils.parameters_to_vector(model.parameters()).detach()
        return ClientResult({"update": after - before}, len(job.data))


def test_a_client_that_trains_on_views_changes_only_its_copy():
    training = start(FedAvg(), TWO)
    result = run_round(FedAvg(), TWO, training, client_ids=[0, 1], local=Vectors())
    assert not training.params.any()
    assert result.training.params.tolist() == [1.0, 1.0]


def test_a_shared_part_of_the_model_is_found():
    backbone = nn.Linear(2, 2)
    federation = Federation(
        lambda: nn.Sequential(backbone, nn.Linear(2, 1)), squared_distance, TWO.clients
    )
    with pytest.raises(TypeError, match="all its parts included"):
        start(FedAvg(), federation)


def test_autocast_of_the_caller_does_not_reach_the_clients():
    federation = classification_federation()
    (outside,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (inside,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
        (threads,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL, executor=Threads(2))
    assert torch.equal(outside.training.params, inside.training.params)
    assert torch.equal(outside.training.params, threads.training.params)


# randomness the seed does not reach


@pytest.mark.parametrize("draw", [np.random.rand, random.random], ids=["numpy", "python"])
def test_draws_from_other_global_generators_are_found(draw: Callable[[], float]):
    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return squared_distance(model, batch) * draw()

    federation = Federation(Point, losses, TWO.clients)
    with pytest.raises(UncontrolledRandomnessError, match="moved"):
        list(simulate(FedAvg(), federation, rounds=1, local=LOCAL))


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropout_inside_activation_checkpointing_is_refused(reentrant: bool):
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inside = nn.Sequential(nn.Linear(2, 4), nn.Dropout(0.5), nn.Linear(4, 1))

        def forward(self, x: Tensor) -> Tensor:
            x = x.requires_grad_()
            return checkpoint(self.inside, x, use_reentrant=reentrant)

    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return model(batch[0]).square().mean().reshape(1)

    federation = Federation(Checkpointed, losses, [Rows(normal(0, 6, 2))])
    with pytest.raises(UncontrolledRandomnessError, match="activation checkpointing"):
        list(simulate(FedAvg(), federation, rounds=1, local=LOCAL))


# wrong shapes and kinds


def test_a_batch_that_is_one_tensor_is_refused_not_cut_into_rows():
    class OneTensor(Rows):
        def batch(self, index: Tensor) -> Any:
            return self.parts[0][index]

    federation = Federation(Point, squared_distance, [OneTensor(*TWO.clients[0].parts)])
    with pytest.raises(Exception, match="must give a tuple of tensors. Got Tensor"):
        list(simulate(FedAvg(), federation, rounds=1, local=LOCAL))


@pytest.mark.parametrize("reports", [[1.0], [[1.0]], [[1.0, 2.0, 3.0]]], ids=["n", "n1", "n3"])
def test_fedhv_wants_one_report_a_task(reports: list[Any]):
    rule = FedHV((2.0, 3.0))
    cohort = make_cohort([[1.0, 0.0]], task_loss=reports)
    with pytest.raises(MalformedReplyError, match="each of 2 tasks"):
        rule.aggregate(rule.init(spec(num_tasks=2)), cohort)


def test_a_step_of_another_shape_is_refused():
    class Short(FedAvg):
        def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
            return Aggregation(torch.ones(1).double(), None)

    with pytest.raises(ValueError, match=r"step must have shape \(2,\). Got \(1,\)"):
        list(simulate(Short(), TWO, rounds=1, local=LOCAL))


def test_a_step_of_another_precision_is_added_in_the_models():
    class Double(FedAvg):
        def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
            return Aggregation(super().aggregate(state, cohort).step.double(), None)

    federation = Federation(lambda: Point(2).float(), squared_distance, [Rows(torch.ones(3, 2))])
    *_, last = simulate(Double(), federation, rounds=2, local=LOCAL)
    assert last.training.params.dtype == torch.float32


def test_losses_may_have_another_precision_than_the_model():
    def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        return squared_distance(model, batch).float()

    federation = Federation(Point, losses, TWO.clients)
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
    assert result.step_norm > 0


class Masked(nn.Module):
    """Holds an attention mask, which is infinite from the start."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2).double())
        self.register_buffer("mask", torch.full((2, 2), -torch.inf).triu(1))


def test_a_buffer_that_was_infinite_from_the_start_is_let_through():
    federation = Federation(Masked, squared_distance, TWO.clients)
    (result,) = simulate(FedAvg(), federation, rounds=1, local=LOCAL)
    assert result.step_norm > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda r: ClientResult({"update": r.fields["update"].float()}, 1),
        lambda r: ClientResult(r.fields, -1),
        lambda r: ClientResult({**r.fields, "client_lr": torch.zeros(())}, 1),
        lambda r: ClientResult(
            {**r.fields, "mood": torch.zeros(3)}, 1, buffers={"x": torch.ones(1)}
        ),
        lambda _: None,
    ],
    ids=["dtype", "negative count", "client_lr", "unknown buffer", "nothing"],
)
def test_a_malformed_result_is_dropped_like_any_other(change: Callable[[Any], Any]):
    class Odd(LocalSGD):
        def __call__(self, job: Any, model: nn.Module, /) -> ClientResult:
            result = super().__call__(job, model)
            return change(result) if job.client_id == 1 else result

    training = start(FedPCD(), TWO)
    with pytest.raises(MalformedReplyError, match="client 1"):
        run_round(FedPCD(), TWO, training, client_ids=[0, 1], local=Odd(lr=0.1))
    policy = Policy(on_invalid="drop")
    result = run_round(FedPCD(), TWO, training, client_ids=[0, 1], local=Odd(lr=0.1), policy=policy)
    assert list(result.failures) == [1]
    alone = run_round(FedPCD(), TWO, training, client_ids=[0], local=LOCAL)
    assert torch.equal(result.training.params, alone.training.params)


def test_updates_with_a_gradient_history_leave_it_behind():
    update = torch.ones(2, requires_grad=True) * 2
    cohort = Cohort.stack([make_reply(0, update)])
    assert not cohort.updates.requires_grad


def make_reply(client: int, update: Tensor) -> Any:
    from fedaccord import Reply

    return Reply(client, 1, {"update": update})


def test_a_history_begun_in_inference_mode_goes_on_outside():
    rule = FedPCD()
    with torch.inference_mode():
        state = rule.aggregate(rule.init(spec()), make_cohort([[1.0, 0.0]])).state
        state = rule.aggregate(state, make_cohort([[1.0, 1.0]], client_ids=[1], round=1)).state
    rule.aggregate(state, make_cohort([[0.0, 1.0]], round=2))


def test_updates_that_change_their_kind_between_rounds_are_refused():
    rule = FedPCD()
    state = rule.aggregate(rule.init(spec()), make_cohort([[1.0, 0.0]])).state
    other = make_cohort([[1.0, 0.0]], round=1, dtype=torch.float32)
    with pytest.raises(ValueError, match="must be alike"):
        rule.aggregate(state, other)


# rules and checkpoints that do not belong together


RULES = [FedAvg(), FedPCD(), FedHV([9.0]), FedHV([9.0], server=FedPCD()), Uniform()]


@pytest.mark.parametrize("saved", RULES, ids=repr)
@pytest.mark.parametrize("loaded", RULES, ids=repr)
def test_a_checkpoint_is_loaded_by_its_own_kind_of_rule_only(saved, loaded, tmp_path):
    *_, last = simulate(saved, TWO, rounds=2, local=LOCAL)
    save(tmp_path / "c", last.training)
    stateless = (FedAvg, Uniform)  # both remember nothing, so their states are alike
    if saved == loaded or (isinstance(saved, stateless) and isinstance(loaded, stateless)):
        assert load(tmp_path / "c", loaded).round == 2
    else:
        with pytest.raises(CheckpointError):
            load(tmp_path / "c", loaded)


@pytest.mark.parametrize(
    "value",
    [{1}, b"x", iter([1]), np.float64(1.0)],
    ids=["set", "bytes", "iterator", "NumPy number"],
)
def test_what_a_checkpoint_cannot_give_back_it_does_not_take(value: object, tmp_path):
    with pytest.raises(TypeError, match="may hold tensors"):
        save(tmp_path / "c", TrainingState(0, torch.zeros(2), {"a": value}))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        save(tmp_path / "no" / "c", TrainingState(0, torch.zeros(2), None))


# arguments of the wrong kind


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FedPCD(tau={0: 0.3, 1: 0.01}), ValueError, "`tau` must be one number"),
        (lambda: FedHV("12"), ValueError, "`reference` must hold one number a task"),
        (lambda: FedHV([1.0], server=FedPCD), ValueError, "`server` must be a rule"),
        (lambda: FedHV([1.0], report="some"), ValueError, "`report` must be 'all'"),
        (lambda: Uniform(report=0), ValueError, "`report` must be 'all'"),
        (lambda: Threads(1.5), ValueError, "`workers` must be an integer"),
        (lambda: Federation("lenet", squared_distance, TWO.clients), TypeError, "`model` must be"),
        (lambda: Federation(Point, squared_distance, {0: 1}), TypeError, "`clients` must be"),
        (
            lambda: Federation(Point, squared_distance, TWO.clients, num_tasks=0),
            ValueError,
            "`num_tasks` must be at least 1",
        ),
        (lambda: simulate(FedAvg, TWO, rounds=1), TypeError, "`rule` must be a rule"),
        (lambda: simulate(FedAvg(), TWO, rounds=1.5), ValueError, "`rounds` must be an integer"),
        (
            lambda: simulate(FedAvg(), TWO, rounds=1, policy="drop"),
            TypeError,
            "`policy` must be a `Policy`",
        ),
        (
            lambda: simulate(FedAvg(), TWO, rounds=1, sampler=max),
            TypeError,
            "`sampler` must have a method `size`",
        ),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_numbers_of_numpy_are_numbers():
    rule = FedPCD(tau=np.float32(0.5), history=np.int64(3))
    assert rule.tau == 0.5
    assert LocalSGD(batch_size=np.int64(4), report=np.int64(2)).batch_size == 4


def test_a_tau_that_is_too_short_for_a_client_names_it():
    rule = FedPCD(tau=[0.1, 0.1])
    state = rule.init(spec(num_clients=2))
    with pytest.raises(ValueError, match="Got 2, but client 5 takes part"):
        rule.aggregate(state, make_cohort([[1.0, 0.0], [-1.0, 0.3]], client_ids=[0, 5]))


# what a new user tried


TRAINED = start(FedPCD(), TWO)


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda: simulate(FedAvg(), TWO, rounds=1, local=0.1), TypeError, "`local` must be"),
        (lambda: simulate(FedAvg(), TWO, rounds=1, executor=2), TypeError, "`executor` must be"),
        (lambda: simulate(FedAvg(), TWO, rounds=1, executor=Threads), TypeError, "`executor`"),
        (
            lambda: simulate(FedAvg(), TWO, rounds=1, training=TRAINED),
            ValueError,
            "a state of FedAvg. Its rule remembered FedPCDState",
        ),
        (
            lambda: simulate(
                FedAvg(), TWO, rounds=1, training=TrainingState(2, torch.zeros(2), None)
            ),
            ValueError,
            "Got 1, but 2 are done already",
        ),
        (
            lambda: simulate(
                FedAvg(), TWO, rounds=1, training=TrainingState(0, torch.zeros(3), None)
            ),
            ValueError,
            "federation's model with 2 parameters",
        ),
        (
            lambda: Federation(Point, squared_distance, [(torch.ones(2), torch.ones(2))]),
            TypeError,
            "ArrayData.of",
        ),
        (
            lambda: Federation(Point, nn.CrossEntropyLoss(), TWO.clients),
            TypeError,
            r"`losses\(model, batch\)`",
        ),
        (lambda: TWO.module(object()), TypeError, "such as `result.training`"),
        (
            lambda: FedPCD().aggregate(None, make_cohort([[1.0, 0.0]])),
            TypeError,
            "must come from `rule.init",
        ),
        (lambda: save("c", object()), TypeError, "such as `result.training`"),
    ],
)
def test_a_foreseeable_mistake_is_answered_by_name(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt()


def test_a_model_can_be_saved_as_it_is(tmp_path):
    save_model(tmp_path / "m", TWO.module(TRAINED))
    assert load_file(tmp_path / "m")["w"].tolist() == [0.0, 0.0]


def test_logits_are_no_log_probabilities():
    model = nn.Linear(2, 3)
    nn.init.ones_(model.weight)
    with pytest.raises(ValueError, match="needs log-probabilities"):
        multi_task_nll(lambda x: (model(x),), (torch.ones(4, 2), torch.zeros(4, 1).long()))
