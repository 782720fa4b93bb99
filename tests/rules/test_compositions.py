"""Which rules go together, in code and on the command line, and which are refused and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from common import Point, classification_federation, spec
from fedaccord import (
    AFL,
    GIFAIR,
    SCAFFOLD,
    TERM,
    Aggregation,
    ClientAlgorithm,
    ClientResult,
    Cohort,
    Ditto,
    FedAvg,
    FedDyn,
    FedHV,
    FedPCD,
    FedProx,
    Job,
    Layout,
    LocalOnly,
    LocalSGD,
    LocalTraining,
    PropFair,
    QFedAvg,
    Reply,
    Request,
    Rule,
    ServerAdagrad,
    ServerAdam,
    ServerMomentum,
    ServerYogi,
    StatelessRule,
    check,
    load,
    save,
    simulate,
)
from fedaccord.cli._spec import parse_rule
from fedaccord.clients import ControlVariate, Descent, Proximal, report_losses
from fedaccord.clients.gradients import shift
from fedaccord.rule import Flow
from fedaccord.rules.afl import AFLState

TOGETHER: dict[str, Rule[Any]] = {
    "adam of fedpcd": ServerAdam(FedPCD(tau=0.05)),
    "yogi of term": ServerYogi(TERM(1.0)),
    "adagrad of gifair": ServerAdagrad(GIFAIR(0.5)),
    "momentum of fedhv of fedpcd": ServerMomentum(FedHV((3.0,), server=FedPCD())),
    "fedhv of momentum of fedpcd": FedHV((3.0,), server=ServerMomentum(FedPCD())),
    "momentum of scaffold": ServerMomentum(SCAFFOLD()),
    "scaffold of momentum": SCAFFOLD(server=ServerMomentum(FedAvg())),
    "fedprox of fedpcd": FedProx(0.1, server=FedPCD()),
    "fedprox of qfedavg": FedProx(0.1, server=QFedAvg(1.0)),
    "fedprox of fedhv": FedProx(0.1, server=FedHV((3.0,))),
    "fedhv of fedprox": FedHV((3.0,), server=FedProx(0.1)),
    "scaffold of fedpcd": SCAFFOLD(server=FedPCD()),
    "propfair of fedprox": PropFair(5.0, server=FedProx(0.1)),
    "propfair of feddyn": PropFair(5.0, server=FedDyn(0.1)),
    "ditto of fedprox of term": Ditto(0.1, server=FedProx(0.1, server=TERM(1.0))),
    "adam of ditto": ServerAdam(Ditto(0.1)),
    "fedhv of ditto of scaffold": FedHV((3.0,), server=Ditto(0.1, server=SCAFFOLD())),
}


@pytest.mark.parametrize("rule", TOGETHER.values(), ids=TOGETHER)
def test_rules_that_go_together_run_save_and_go_on(rule: Rule[Any], tmp_path: Any):
    federation, local = classification_federation(4), LocalSGD(lr=0.1)
    results = list(simulate(rule, federation, rounds=2, local=local))
    assert all(result.step_norm > 0 for result in results)
    save(tmp_path / "training", results[0].training)
    (again,) = simulate(
        rule, federation, rounds=2, local=local, training=load(tmp_path / "training", rule)
    )
    assert torch.equal(again.training.params, results[1].training.params)


ALONE = "nothing is shared|no shared model|makes no step|nobody to be fair|do not drift"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        *(
            (lambda outer=outer: outer(LocalOnly()), f"LocalOnly inside: .*({ALONE})")
            for outer in (
                ServerAdam,
                ServerYogi,
                ServerAdagrad,
                ServerMomentum,
                lambda rule: FedHV((1.0,), server=rule),
                lambda rule: FedProx(0.1, server=rule),
                lambda rule: PropFair(server=rule),
                lambda rule: Ditto(0.1, server=rule),
                lambda rule: SCAFFOLD(server=rule),
            )
        ),
        (lambda: ServerAdam(ServerMomentum(FedAvg())), "one server optimiser"),
        (lambda: ServerMomentum(FedProx(0.1, server=ServerYogi(FedAvg()))), "one server optimiser"),
        (lambda: ServerMomentum(FedDyn(0.1)), "must stay as it is"),
        (lambda: FedProx(0.1, server=FedDyn(0.1)), "a term of its own"),
        (lambda: SCAFFOLD(server=FedDyn(0.1)), "corrects the same drift"),
        (lambda: FedProx(0.1, server=FedProx(0.2)), "can be there once"),
        (lambda: FedProx(0.1, server=SCAFFOLD(server=FedProx(0.2))), "can be there once"),
        (lambda: SCAFFOLD(server=SCAFFOLD()), "can be there once"),
        (lambda: Ditto(0.1, server=Ditto(0.1)), "can be there once"),
        (lambda: FedProx(0.1, server=Ditto(0.1)), r"Write `Ditto\(lam, server=FedProx\(mu\)\)`"),
        (lambda: SCAFFOLD(server=Ditto(0.1)), r"Write `Ditto\(lam, server=SCAFFOLD\(\)\)`"),
        (lambda: PropFair(server=Ditto(0.1)), r"Write `Ditto\(lam, server=PropFair\(\)\)`"),
        (lambda: FedProx(0.1, server=FedAvg), "`server` must be a rule"),
        (lambda: SCAFFOLD(server="fedavg"), "`server` must be a rule"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(make: Callable[[], Any], reason: str):
    with pytest.raises(ValueError, match=reason):
        make()


class PerTaskClients:
    """A client algorithm with a way of its own to train."""

    reports = ("update", "control_update")

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        raise AssertionError("never called")


@dataclass(frozen=True)
class SeveralPaths(FedAvg):
    """A rule whose clients train several models."""

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        return {"train": PerTaskClients()}


@pytest.mark.parametrize(
    "rule",
    [
        FedProx(0.1, server=SeveralPaths()),
        PropFair(server=SeveralPaths()),
        Ditto(0.1, server=SeveralPaths()),
        SCAFFOLD(server=SeveralPaths()),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_clients_that_train_in_a_way_of_their_own_are_refused_before_the_first_round(
    rule: Rule[Any],
):
    with pytest.raises(ValueError, match=r"clients of SeveralPaths do something else"):
        check(rule, LocalSGD())


@dataclass(frozen=True)
class Rigid:
    """Local training that takes no hooks in its call."""

    reports = ("update", "client_lr")

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        return LocalSGD()(job, model)

    def reporting(self, budget: Any, /) -> Rigid:
        return self

    def descend(self, job: Job, model: nn.Module, **options: Any) -> Descent:
        return LocalSGD().descend(job, model, **options)


@pytest.mark.parametrize(
    "rule",
    [FedProx(0.1), PropFair(), Ditto(0.1), SCAFFOLD(), FedDyn(0.1)],
    ids=lambda rule: type(rule).__name__,
)
def test_local_training_that_cannot_be_changed_is_refused_before_the_first_round(rule: Rule[Any]):
    with pytest.raises(ValueError, match=r"callable as .*objective=.*Got Rigid"):
        check(rule, Rigid())
    check(FedAvg(), Rigid())
    check(LocalOnly(), Rigid())


def test_clients_of_both_rules_are_changed():
    algorithm = SCAFFOLD(server=FedProx(0.3, server=FedPCD())).client_algorithms(LocalSGD())[
        "train"
    ]
    assert algorithm == Proximal(ControlVariate(LocalSGD()), 0.3)
    assert isinstance(algorithm, LocalTraining)


def test_a_report_reaches_the_local_training_inside():
    rule = FedProx(0.3, server=SCAFFOLD(server=QFedAvg(1.0)))
    algorithm = rule.client_algorithms(LocalSGD())["train"]
    assert "loss" in algorithm.reports
    assert algorithm == ControlVariate(Proximal(LocalSGD(report="all"), 0.3))


def test_a_server_lr_multiplies_that_of_the_rule_inside():
    federation, local = classification_federation(3), LocalSGD(lr=0.1)
    once, six = (
        next(simulate(rule, federation, rounds=1, local=local)).step_norm
        for rule in (
            FedProx(0.1),
            FedProx(0.1, server=FedAvg(server_lr=2.0), server_lr=3.0),
        )
    )
    assert six == pytest.approx(6 * once)


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        ("serveradam:rule=fedavg", ServerAdam(FedAvg())),
        ("serveradam:rule=(fedpcd:tau=0.05)", ServerAdam(FedPCD(tau=0.05))),
        (
            "server-yogi:rule=(fedprox:mu=0.1,server=(fedpcd:tau=0.05,history=3)),beta1=0.5",
            ServerYogi(FedProx(0.1, server=FedPCD(tau=0.05, history=3)), beta1=0.5),
        ),
        (
            "ditto:lam=0.5,server=(scaffold:server=fedpcd)",
            Ditto(0.5, server=SCAFFOLD(server=FedPCD())),
        ),
        ("term:t=-1", TERM(-1)),
        ("propfair", PropFair()),
        ("localonly", LocalOnly()),
    ],
)
def test_the_command_line_spells_rules_inside_rules(typed: str, rule: Rule[Any]):
    choice = parse_rule(typed).choice
    assert choice.build() == rule
    assert parse_rule(str(choice)).choice == choice  # what is shown can be typed again


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("serveradam", "ServerAdam needs `rule`"),
        ("serveradam:rule=3", "`rule` must be a rule. Got 3"),
        ("serveradam:rule=fedpdc", "Did you mean `FedPCD`"),
        ("serveradam:rule=(fedpcd:tua=1)", "Did you mean `tau`"),
        ("serveradam:rule=localonly", "cannot have LocalOnly inside"),
    ],
)
def test_mistakes_inside_are_named(typed: str, message: str):
    with pytest.raises(ValueError, match=message):
        parse_rule(typed)


def test_a_reference_inside_is_left_to_calibration():
    choice = parse_rule("serveradam:rule=(ditto:lam=0.5,server=fedhv)").choice
    assert choice.lacks_reference
    wanted = ServerAdam(Ditto(0.5, server=FedHV((2.0,))))
    assert choice.with_reference((2.0,)).build() == wanted


@dataclass(frozen=True)
class TaskMean(StatelessRule):
    """A rule whose clients report an update for each task."""

    paper = "no paper"

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        return {"train": ("task_update",)}

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        return Aggregation(cohort.task_updates.mean((0, 1)), None)


def test_a_server_optimiser_takes_rules_whose_clients_report_updates_of_tasks():
    updates = torch.tensor([[1.0, 0.0], [0.0, 3.0]], dtype=torch.float64)
    cohort = Cohort.stack([Reply(0, 1, {"task_update": updates})])
    rule = ServerMomentum(TaskMean())
    step, _, seen = rule.aggregate(rule.init(spec()), cohort)
    assert step.tolist() == [0.5, 1.5]
    assert "cosines" not in seen  # there is no one update to compare with


@dataclass(frozen=True)
class LossOnly:
    """Report losses of a trial point, without training."""

    reports = ("task_loss",)

    def __call__(self, job: Job, model: nn.Module, /) -> ClientResult:
        job.load(model)
        losses = report_losses(job, model, budget="all", batch_size=10)
        return ClientResult({"task_loss": losses}, len(job.data))


@dataclass(frozen=True)
class TrialAfterwards(StatelessRule):
    """FedAvg, which asks for losses of the model it made before it is done."""

    paper = "no paper"

    @property
    def needs(self) -> Mapping[str, tuple[str, ...]]:
        return {"train": ("update", "task_loss"), "loss": ("task_loss",)}

    def client_algorithms(self, local: LocalTraining) -> Mapping[str, ClientAlgorithm]:
        return {"train": local.reporting("all"), "loss": LossOnly()}

    def aggregate(self, state: None, cohort: Cohort) -> Aggregation[None]:
        return FedAvg().aggregate(state, cohort)

    def round(self, state: None, params: Tensor) -> Flow[None]:
        cohort = yield Request("train", params)
        step = self.aggregate(state, cohort).step
        trial = yield Request("loss", params + step)
        return Aggregation(step, None, {"trial_loss": float(trial.task_losses.mean())})


def test_rules_around_one_with_several_requests_see_the_answers_from_training():
    federation, local = classification_federation(3), LocalSGD(lr=0.1)
    (plain,) = simulate(FedHV((3.0,)), federation, rounds=1, local=local)
    rule = ServerMomentum(FedHV((3.0,), server=FedProx(0.0, server=TrialAfterwards())), beta=0.0)
    (result,) = simulate(rule, federation, rounds=1, local=local)
    seen = result.diagnostics
    # FedHV's report is of the received model, not of the trial; all clients are equally large
    assert seen["task_losses"].equal(plain.diagnostics["task_losses"])
    assert seen["trial_loss"] < seen["task_losses"].item()
    assert set(seen["cosines"]) == {0, 1, 2}
    assert_close(result.training.params, plain.training.params)


@pytest.mark.parametrize(
    "around",
    [
        lambda rule: FedProx(0.1, server=rule),
        lambda rule: SCAFFOLD(server=rule),
        lambda rule: FedHV((3.0,), server=rule),
        ServerMomentum,
        lambda rule: ServerAdam(Ditto(0.1, server=rule)),
    ],
    ids=["FedProx", "SCAFFOLD", "FedHV", "ServerMomentum", "ServerAdam of Ditto"],
)
def test_what_the_rule_inside_evaluates_is_evaluated(around: Callable[[Rule[Any]], Rule[Any]]):
    rule, federation = around(AFL(0.1)), classification_federation(3)
    training = list(simulate(rule, federation, rounds=3, local=LocalSGD(lr=0.1)))[-1].training
    state = training.rule_state
    while not isinstance(state, AFLState):
        state = state.rule if hasattr(state, "rule") else state.server
    wanted = AFL(0.1).evaluated(state, training.params)
    assert torch.equal(rule.evaluated(training.rule_state, training.params), wanted)
    assert not torch.equal(wanted, training.params)


def test_a_correction_of_a_missing_gradient_is_memory_of_its_own():
    model, vector = Point(), torch.ones(2, dtype=torch.float64)
    shift(Layout.of(model), vector)(model)
    model.w.grad *= 0  # as clipping in place does
    assert vector.tolist() == [1, 1]
