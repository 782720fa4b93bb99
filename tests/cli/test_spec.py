"""Rules as they are typed."""

from __future__ import annotations

import pytest

from fedaccord import FedHV, FedPCD
from fedaccord.cli._spec import parse_rule, parse_value


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("fedpcd", FedPCD()),
        ("FedPCD:tau=0.05,history=3", FedPCD(tau=0.05, history=3)),
        ("fedpcd:tau=.05", FedPCD(tau=0.05)),
        ("fedpcd: tau = 1e-2 , normalize = False", FedPCD(tau=0.01, normalize=False)),
        ("fedpcd:tau=[0.1,0.2]", FedPCD(tau=(0.1, 0.2))),
        ("fedpcd:infeasible=protect", FedPCD(infeasible="protect")),
        ("fedpcd:history_dtype=none", FedPCD()),
        ("fedhv:reference=[2.4,2.5],report=3", FedHV((2.4, 2.5), report=3)),
        ("fedhv:reference=[2],server=fedpcd", FedHV((2.0,), server=FedPCD())),
        (
            "fedhv:reference=[2],server=(fedpcd:tau=0.1,history=3),floor=0.1",
            FedHV((2.0,), server=FedPCD(tau=0.1, history=3), floor=0.1),
        ),
        (
            "fedhv:reference=[2],server=(fedhv:reference=[3],server=(fedpcd:tau=0.1))",
            FedHV((2.0,), server=FedHV((3.0,), server=FedPCD(tau=0.1))),
        ),
    ],
)
def test_a_typed_rule_is_the_rule(text: str, rule: object):
    assert parse_rule(text).choice.build() == rule


def test_keys_of_local_training_are_for_this_rule_alone():
    typed = parse_rule("fedpcd:tau=0.1,lr=0.3,steps=5")
    assert typed.local == {"local.lr": 0.3, "local.steps": 5}
    assert typed.typed == ("tau",)


def test_what_a_choice_prints_can_be_typed():
    text = "fedhv:reference=[2.5,2.0],server=(fedpcd:tau=0.1,normalize=false)"
    choice = parse_rule(text).choice
    assert parse_rule(str(choice)).choice == choice


@pytest.mark.parametrize("text", ["fedpcd:tau", "fedpcd:=3", "fedpcd:tau=", "fedpcd:tau=1,"])
def test_what_cannot_be_read_is_refused_with_the_form(text: str):
    with pytest.raises(ValueError, match="A rule is written `name:key=value,key=value`"):
        parse_rule(text)


def test_brackets_may_be_nested_as_deep_as_anybody_needs():
    text = "fedavg"
    for _ in range(5):
        text = f"(fedhv:reference=[2],server={text})"
    assert parse_rule(text[1:-1]).choice.name == "FedHV"


@pytest.mark.parametrize(
    "text",
    [
        "fedhv:server=" + "(fedhv:server=" * 300 + "fedavg" + ")" * 300,
        "fedpcd:tau=" + "[" * 300 + "1" + "]" * 300,
        "fedhv:server=" * 300 + "fedavg",
    ],
    ids=["parentheses", "brackets", "words"],
)
def test_brackets_nested_without_end_are_refused(text: str):
    with pytest.raises(ValueError, match="Brackets may be nested 20 deep"):
        parse_rule(text)


def test_a_word_with_a_colon_is_a_rule_only_where_rules_stand():
    assert parse_value("cuda:0", rules=False) == "cuda:0"
    with pytest.raises(ValueError, match="A rule is written"):
        parse_value("cuda:0")


def test_a_key_given_twice_is_refused():
    with pytest.raises(ValueError, match="`tau` twice"):
        parse_rule("fedpcd:tau=0.1,tau=0.2")
