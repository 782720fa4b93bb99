"""What every rule keeps, and what its claims promise. A rule is tested by existing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields, is_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import fedaccord
from common import make_cohort, spec
from fedaccord import (
    AFL,
    CRAFT,
    GIFAIR,
    SCAFFOLD,
    TERM,
    Cohort,
    Ditto,
    FedAvg,
    FedDyn,
    FedFV,
    FedHV,
    FedLF,
    FedMGDAPlus,
    FedPCD,
    FedProx,
    History,
    LocalOnly,
    PropFair,
    QFedAvg,
    Rule,
    ServerAdagrad,
    ServerAdam,
    ServerMomentum,
    ServerYogi,
    Uniform,
    check,
    rules,
)
from fedaccord.clients import LocalSGD

# Every rule that needs no argument is here by existing; others, and options, are added by hand.
BY_DEFAULT = {
    name: rule()
    for name in rules.__all__
    if is_dataclass(rule := getattr(rules, name))
    and all(f.default is not MISSING or f.default_factory is not MISSING for f in fields(rule))
}
RULES: dict[str, Rule[Any]] = {
    **BY_DEFAULT,
    "FedAvg, server_lr": FedAvg(server_lr=0.7),
    "FedPCD, eps 0": FedPCD(eps=0.0),
    "FedPCD, tau 0": FedPCD(tau=0.0, eps=0.0),
    "FedPCD, protect": FedPCD(tau=0.3, infeasible="protect", eps=0.0),
    "FedPCD, not normalised": FedPCD(normalize=False),
    "FedPCD, no primary": FedPCD(primary=False),
    "FedPCD, no history": FedPCD(history=0),
    "FedPCD, bfloat16": FedPCD(history_dtype="bfloat16"),
    "FedPCD, bounded": FedPCD(max_norm=1.5, eps=0.0),
    "FedHV": FedHV((3.0, 2.0)),
    "FedHV over FedPCD": FedHV((3.0, 2.0), server=FedPCD(eps=0.0)),
    "Uniform, report": Uniform(report="all"),
    "AFL": AFL(0.1),
    "AFL, ascend first": AFL(0.1, order="ascend-first", evaluates="average-with-start"),
    "AFL, last": AFL(0.01, evaluates="last"),
    "QFedAvg": QFedAvg(1.0),
    "QFedAvg, q 0": QFedAvg(0.0),
    "QFedAvg, q 0.1": QFedAvg(0.1),
    "QFedAvg, q 50": QFedAvg(50.0),
    "FedMGDAPlus, normalised": FedMGDAPlus(0.0, prior="shares"),
    "FedMGDAPlus, MGDA": FedMGDAPlus(1.0),
    "FedMGDAPlus, zeros kept": FedMGDAPlus(1.0, keep_zero=True),
    "FedFV, alpha 0": FedFV(alpha=0.0, tau=3),
    "FedFV, shifted": FedFV(alpha=0.5, tau=2, window="shifted"),
    "FedLF, not merged": FedLF(merge=False),
    "FedLF, model": FedLF(blocks="model"),
    "CRAFT, tensors": CRAFT(blocks="tensors", server_lr=1.0),
    "Ditto": Ditto(0.5),
    "FedDyn": FedDyn(0.1),
    "FedProx": FedProx(0.1),
    "FedProx over FedPCD": FedProx(0.1, server=FedPCD(eps=0.0)),
    "PropFair over FedPCD": PropFair(server=FedPCD(eps=0.0)),
    "SCAFFOLD over FedPCD": SCAFFOLD(server=FedPCD(eps=0.0)),
    "ServerAdagrad": ServerAdagrad(FedAvg()),
    "ServerAdam": ServerAdam(FedAvg()),
    "ServerAdam over FedPCD": ServerAdam(FedPCD()),
    "ServerMomentum": ServerMomentum(FedAvg()),
    "ServerMomentum over FedHV": ServerMomentum(FedHV((3.0, 2.0), server=FedPCD())),
    "ServerYogi": ServerYogi(FedAvg()),
    "TERM": TERM(1.0),
    "TERM, minus": TERM(-2.0),
    "TERM, t 1000": TERM(1000.0),
    "TERM, legacy": TERM(1.0, legacy=True),
    "GIFAIR, c 1": GIFAIR(1.0),
}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)

# no step at all, or elements scaled apart; their own tests say what direction the step has
OTHER_DIRECTION = (LocalOnly, ServerAdagrad, ServerAdam, ServerYogi)
ALONG = {name: rule for name, rule in RULES.items() if not isinstance(rule, OTHER_DIRECTION)}
every_rule_along_updates = pytest.mark.parametrize("rule", ALONG.values(), ids=ALONG)


def rules_that_claim(claim: str) -> pytest.MarkDecorator:
    names = [name for name, rule in RULES.items() if getattr(rule.claims, claim)]
    assert names, f"No rule claims `{claim}`, so nothing would be tested."
    return pytest.mark.parametrize("rule", [RULES[name] for name in names], ids=names)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cohort_of(updates: Tensor, *, dtype: torch.dtype = torch.float64, **options: Any) -> Cohort:
    """Clients that report what rules need; ``loss`` is of both kinds, unequal if not given."""
    n = len(updates)
    task_losses = (normal(9, n, 2).abs() * 0.2 + 1).tolist()
    losses = options.pop("loss", [1.0 + i for i in range(n)])
    return make_cohort(
        updates,
        dtype=dtype,
        loss=losses,
        train_loss=losses,
        task_loss=task_losses,
        client_lr=[0.1] * n,
        control_update=(-updates / 0.1).tolist(),
        **options,
    )


INPUTS: dict[str, Callable[[], Tensor]] = {
    "agreeing": lambda: normal(0, 4, 6) * 0.1 + 1,
    "conflicting": lambda: normal(1, 4, 6),
    "parallel": lambda: torch.arange(1.0, 5)[:, None] * normal(2, 1, 6),
    "equal": lambda: normal(3, 1, 6).repeat(4, 1),
    "more clients than dimensions": lambda: normal(4, 9, 2),
    "one client": lambda: normal(5, 1, 6),
    "a zero among others": lambda: torch.cat([torch.zeros(1, 6), normal(6, 3, 6)]),
    "all zero": lambda: torch.zeros(3, 6),
    "opposite": lambda: torch.tensor([[1.0, 0, 0], [-1, 0, 0]]),
    "opposite and a little": lambda: torch.tensor([[1.0, 0], [-1, 0], [0, 0.001]]),
    "one parameter": lambda: torch.tensor([[1.0], [-2.0], [0.5]]),
    "tiny": lambda: normal(7, 3, 6) * 1e-30,
    "huge": lambda: normal(8, 3, 6) * 1e30,
    "very different lengths": lambda: normal(9, 3, 6) * torch.tensor([[1e-8], [1.0], [1e8]]),
}
every_input = pytest.mark.parametrize("updates", INPUTS.values(), ids=INPUTS)


def state_of(rule: Rule[Any], cohort: Cohort, num_clients: int = 12) -> Any:
    return rule.init(spec(cohort.updates.shape[1], num_clients, num_tasks=2))


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, tensors included."""
    if isinstance(a, Tensor):
        return torch.equal(a, b) or bool(a.isnan().all() and b.isnan().all())
    if isinstance(a, float):
        return a == b or (a != a and b != b)  # NaN is equal to NaN here
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, History):
        return same(a.pack(), b.pack())
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)


@every_rule
@every_input
def test_the_step_is_finite_and_fits_the_model(rule: Rule[Any], updates: Callable[[], Tensor]):
    cohort = cohort_of(updates())
    step, _, _ = rule.aggregate(state_of(rule, cohort), cohort)
    assert step.shape == cohort.updates.shape[1:]
    assert step.dtype == cohort.updates.dtype
    assert torch.isfinite(step).all()


@every_rule
@pytest.mark.parametrize("name", ["all zero", "opposite"])
def test_a_round_without_step_says_why(rule: Rule[Any], name: str):
    cohort = cohort_of(INPUTS[name]())
    step, _, seen = rule.aggregate(state_of(rule, cohort), cohort)
    if not step.any():
        assert seen["outcome"] not in ("moved", "projected", "average")
    else:  # some rules do move: by unequal weights, or by what they remember
        assert name == "opposite"


@every_rule
@every_input
def test_the_inputs_are_left_alone(rule: Rule[Any], updates: Callable[[], Tensor]):
    cohort = cohort_of(updates())
    before = copy.deepcopy(dict(cohort.fields))
    rule.aggregate(state_of(rule, cohort), cohort)
    assert same(dict(cohort.fields), before)


@every_rule
@every_input
def test_repeating_gives_the_same_bytes(rule: Rule[Any], updates: Callable[[], Tensor]):
    first, second = cohort_of(updates()), cohort_of(-updates(), round=1)
    state = rule.aggregate(state_of(rule, first), first).state
    a, b = rule.aggregate(state, second), rule.aggregate(state, second)
    assert same(a.step, b.step)
    assert same(dict(a.diagnostics), dict(b.diagnostics))


@every_rule
def test_a_round_that_is_not_used_leaves_the_state_as_it_was(rule: Rule[Any]):
    first = cohort_of(normal(0, 4, 6))
    state = rule.aggregate(state_of(rule, first), first).state
    wanted = rule.aggregate(state, cohort_of(normal(2, 4, 6), round=1))
    rule.aggregate(state, cohort_of(normal(1, 4, 6), round=1))  # thrown away
    again = rule.aggregate(state, cohort_of(normal(2, 4, 6), round=1))
    assert same(wanted.step, again.step)


@every_rule
def test_arrival_order_does_not_matter(rule: Rule[Any]):
    cohort = cohort_of(normal(1, 5, 1000), dtype=torch.float32)
    replies = [
        fedaccord.Reply(c, 1, {name: values[i] for name, values in cohort.fields.items()})
        for i, c in enumerate(cohort.client_ids)
    ]
    steps = []
    for order in (replies, replies[::-1], replies[2:] + replies[:2]):
        stacked = Cohort.stack(order, layout=cohort.layout)
        steps.append(rule.aggregate(state_of(rule, stacked), stacked).step)
    assert torch.equal(steps[0], steps[1])
    assert torch.equal(steps[0], steps[2])


@every_rule_along_updates
def test_one_client_alone_decides_the_direction(rule: Rule[Any]):
    cohort = cohort_of(torch.tensor([[3.0, -1.0]]).double())
    step, _, _ = rule.aggregate(state_of(rule, cohort), cohort)
    cosine = torch.nn.functional.cosine_similarity(step, cohort.updates[0], dim=0)
    assert cosine.item() == pytest.approx(1)


@every_rule_along_updates
def test_equal_clients_give_their_direction(rule: Rule[Any]):
    cohort = cohort_of(torch.tensor([[1.0, 2.0, 3.0]] * 3), loss=[0.7] * 3)
    step, _, _ = rule.aggregate(state_of(rule, cohort), cohort)
    cosine = torch.nn.functional.cosine_similarity(step, cohort.updates[0], dim=0)
    assert cosine.item() == pytest.approx(1, abs=1e-12)


@every_rule
def test_nobody_moving_is_no_step(rule: Rule[Any]):
    cohort = cohort_of(torch.zeros(3, 4))
    step, _, _ = rule.aggregate(state_of(rule, cohort), cohort)
    assert not step.any()


@rules_that_claim("non_conflicting")
@every_input
def test_no_client_loses_where_that_is_claimed(rule: Rule[Any], updates: Callable[[], Tensor]):
    cohort = cohort_of(updates())
    step, _, seen = rule.aggregate(state_of(rule, cohort), cohort)
    if seen["outcome"] == "infeasible":  # no direction serves everybody, and it is said
        assert seen["feasibility_margin"] <= 1e-7
        return
    rows = cohort.updates
    # rounding of the products: a few units in the last place of the lengths multiplied
    assert (rows @ step >= -1e-12 * rows.norm(dim=1) * step.norm()).all()


@rules_that_claim("scale_equivariant")
@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_scaling_all_updates_scales_the_step_where_that_is_claimed(rule: Rule[Any], factor: float):
    one, many = cohort_of(normal(1, 4, 6)), cohort_of(factor * normal(1, 4, 6))
    a, b = (rule.aggregate(state_of(rule, c), c).step for c in (one, many))
    torch.testing.assert_close(factor * a, b, rtol=1e-9, atol=0)


@rules_that_claim("keeps_mean_norm")
@every_input
def test_the_step_has_the_means_length_where_that_is_claimed(
    rule: Rule[Any], updates: Callable[[], Tensor]
):
    cohort = cohort_of(updates())
    step, _, _ = rule.aggregate(state_of(rule, cohort), cohort)
    mean = (cohort.shares @ cohort.updates).norm() * rule.server_lr
    if step.any():
        torch.testing.assert_close(step.norm(), mean)


@every_rule
def test_a_rule_is_a_frozen_value(rule: Rule[Any]):
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(rule) == hash(copy.deepcopy(rule))
    with pytest.raises(FrozenInstanceError):
        rule.server_lr = 2.0


@every_rule
def test_a_rule_says_where_it_comes_from(rule: Rule[Any]):
    assert rule.paper


@every_rule
def test_local_sgd_reports_what_the_rule_needs(rule: Rule[Any]):
    check(rule, LocalSGD())


@pytest.mark.parametrize("name", [n for n in rules.__all__ if is_dataclass(getattr(rules, n))])
def test_every_rule_is_in_the_battery(name: str):
    assert any(isinstance(rule, getattr(rules, name)) for rule in RULES.values())
