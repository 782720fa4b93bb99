"""What the server-side fairness rules share: resuming, absence, duplicates, diagnostics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from common import spec
from fedaccord import (
    AFL,
    CRAFT,
    Cohort,
    FedAvg,
    FedFV,
    FedHEAL,
    FedLF,
    FedMGDAPlus,
    FedPW,
    Layout,
    LocalSGD,
    QFedAvg,
    Rule,
    load,
    run_round,
    save,
    start,
)
from rules.test_battery import cohort_of, normal, same
from rules.test_golden_server import ASKED, LR, federation

RULES: dict[str, Rule[Any]] = {
    type(rule).__name__: rule
    for rule in (
        AFL(0.01), QFedAvg(2.0), FedMGDAPlus(), FedFV(tau=2), FedLF(), FedHEAL(), FedPW(), CRAFT(),
    )
}  # fmt: skip
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
LOCAL = LocalSGD(lr=LR, batch_size=100, epochs=2)


def step_of(rule: Rule[Any], cohort: Cohort) -> Tensor:
    return rule.aggregate(rule.init(spec(cohort.updates.shape[1], 12)), cohort).step


@every_rule
def test_a_saved_run_goes_on_to_the_same_bytes(rule: Rule[Any], tmp_path: Path):
    place = federation()
    straight = broken = start(rule, place)
    for t, ids in enumerate(ASKED):
        options: dict[str, Any] = {"client_ids": ids, "local": LOCAL}
        one = run_round(rule, place, straight, **options)
        other = run_round(rule, place, broken, **options)
        straight, broken = one.training, other.training
        assert same(dict(one.diagnostics), dict(other.diagnostics))
        if t == 2:  # in the middle of partial participation
            save(tmp_path / "state", broken)
            broken = load(tmp_path / "state", rule)
    assert torch.equal(straight.params, broken.params)
    save(tmp_path / "a", straight)
    save(tmp_path / "b", broken)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@every_rule
def test_a_client_that_never_comes_back_stops_nobody(rule: Rule[Any]):
    cohort = cohort_of(normal(0, 3, 6))
    state = rule.aggregate(rule.init(spec(6, 12)), cohort).state
    for t in range(1, 6):
        rows = normal(t, 2, 6) + 2  # client 0 is gone
        later = replace(cohort_of(rows, client_ids=[1, 2]), round=t)
        step, state, _ = rule.aggregate(state, later)
        assert torch.isfinite(step).all()
        assert step.any()


@every_rule
def test_the_cosines_are_those_of_the_step_with_the_updates(rule: Rule[Any]):
    cohort = cohort_of(torch.cat([normal(1, 3, 6) + 1, torch.zeros(1, 6)]), loss=[1.0] * 4)
    step, _, seen = rule.aggregate(rule.init(spec(6, 12)), cohort)
    *moving, idle = seen["cosines"].values()
    wanted = torch.nn.functional.cosine_similarity(cohort.updates[:3], step[None])
    assert_close(torch.tensor(moving).double(), wanted)
    assert idle != idle  # NaN: a zero update has no direction


def test_an_update_too_small_to_have_a_direction_has_no_cosine():
    cohort = cohort_of(torch.tensor([[1.0, 0.0], [1e-200, 0.0]], dtype=torch.float64))
    seen = FedMGDAPlus().aggregate(None, cohort).diagnostics
    assert seen["cosines"][0] == 1.0
    assert seen["cosines"][1] != seen["cosines"][1]


@every_rule
def test_weights_are_given_by_client_id(rule: Rule[Any]):
    cohort = cohort_of(normal(1, 3, 6) + 1, client_ids=[2, 5, 9])
    seen = rule.aggregate(rule.init(spec(6, 12)), cohort).diagnostics
    assert tuple(seen["weights"]) == (2, 5, 9)


@pytest.mark.parametrize(
    "rule", [r for r in RULES.values() if not isinstance(r, FedFV)], ids=lambda r: type(r).__name__
)
def test_duplicating_every_client_changes_nothing(rule: Rule[Any]):
    # not so for FedFV, which keeps a fraction of the *number* of clients
    rows, losses = normal(3, 3, 6) + 0.5, [1.0, 2.0, 3.0]
    once = step_of(rule, cohort_of(rows, loss=losses))
    twice = step_of(rule, cohort_of(rows.repeat(2, 1), loss=losses * 2))
    # CRAFT asks for progress by share, and shares are halved
    assert_close(twice, once / 2 if isinstance(rule, CRAFT) else once)


@every_rule
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layers_of_one_parameter_work(rule: Rule[Any], dtype: torch.dtype):
    layout = Layout(("a", "b", "c"), ((1,), (1,), ()))
    state = rule.init(replace(spec(3, 12), layout=layout))
    for t in range(3):
        cohort = cohort_of(normal(t, 4, 3) + 0.3, dtype=dtype, loss=[1.0] * 4)
        cohort = replace(cohort, layout=layout, round=t)
        step, state, _ = rule.aggregate(state, cohort)
        assert torch.isfinite(step).all()


@every_rule
def test_the_last_model_is_evaluated_unless_the_rule_says_otherwise(rule: Rule[Any]):
    place = federation()
    training = run_round(rule, place, start(rule, place), client_ids=[0, 1], local=LOCAL).training
    if not isinstance(rule, AFL):
        assert torch.equal(rule.evaluated(training.rule_state, training.params), training.params)


def test_the_default_is_the_last_model():
    params = torch.ones(3)
    assert FedAvg().evaluated(None, params) is params


@pytest.mark.parametrize("rule", [FedFV(), FedLF()], ids=["FedFV", "FedLF"])
def test_a_history_refuses_a_round_that_does_not_advance(rule: Rule[Any]):
    cohort = cohort_of(normal(0, 3, 6))
    state = rule.aggregate(rule.init(spec(6, 12)), cohort).state
    with pytest.raises(ValueError, match="Got round 0 after round 0"):
        rule.aggregate(state, cohort)


@pytest.mark.parametrize(
    "rule",
    [r for r in RULES.values() if not isinstance(r, FedMGDAPlus | QFedAvg)],
    ids=lambda r: type(r).__name__,
)
def test_a_state_of_something_else_is_refused(rule: Rule[Any]):
    with pytest.raises(TypeError, match=r"`state` must come from `rule.init\(spec\)`. Got int"):
        rule.aggregate(0, cohort_of(normal(0, 3, 6)))


@every_rule
@pytest.mark.parametrize("rows", [torch.zeros(2, 3), torch.tensor([[1.0, 2, 3], [-1, -2, -3]])])
def test_no_step_has_its_reason_in_the_diagnostics(rule: Rule[Any], rows: Tensor):
    cohort = cohort_of(rows, loss=[1.0, 1.0])
    step, _, seen = rule.aggregate(rule.init(spec(3, 2)), cohort)
    assert not step.any()
    assert seen["outcome"] in ("stationary", "all-zero", "no-average")
