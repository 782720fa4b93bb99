"""Rules, partitions and models by name."""

from __future__ import annotations

import pytest

import fedaccord
from fedaccord import FedAvg, FedHV, FedPCD, UnknownNameError
from fedaccord.data import load
from fedaccord.experiments import (
    ModelChoice,
    PartitionChoice,
    RuleChoice,
    model_factories,
    partition_functions,
    rule_classes,
)


@pytest.mark.parametrize("name", ["FedPCD", "fedpcd", "FEDPCD", "fed-pcd", "fed_pcd"])
def test_case_and_hyphens_of_a_name_do_not_matter(name: str):
    assert RuleChoice(name).build() == FedPCD()


def test_every_exported_rule_can_be_chosen():
    rules = {
        name
        for name in fedaccord.__all__
        if isinstance(value := getattr(fedaccord, name), type)
        and issubclass(value, fedaccord.Rule)
        and value not in (fedaccord.Rule, fedaccord.StatelessRule)
    }
    assert set(rule_classes()) == rules


def test_hyperparameters_that_are_not_given_are_the_rules_own():
    assert RuleChoice("fedpcd", {"tau": 0.1}).options["history"] == FedPCD().history


def test_a_rule_inside_a_rule_is_built_with_it():
    server = RuleChoice("fedpcd", {"tau": 0.5})
    built = RuleChoice("fedhv", {"reference": [2, 3], "server": server}).build()
    assert built == FedHV((2.0, 3.0), server=FedPCD(tau=0.5))


def test_a_rule_inside_a_rule_can_be_a_name():
    choice = RuleChoice("fedhv", {"reference": [2.0], "server": "fedavg"})
    assert choice.build() == FedHV((2.0,), server=FedAvg())


def test_one_value_for_each_client_is_possible():
    assert RuleChoice("fedpcd", {"tau": [0.1, 0.2]}).build() == FedPCD(tau=(0.1, 0.2))


def test_only_a_missing_reference_is_lacking():
    assert RuleChoice("fedhv").lacks_reference
    assert not RuleChoice("fedhv", {"reference": [2.0]}).lacks_reference
    assert not RuleChoice("fedpcd").lacks_reference


def test_a_rule_that_lacks_its_reference_cannot_be_built():
    with pytest.raises(ValueError, match=r"FedHV needs `reference`"):
        RuleChoice("fedhv").build()


def test_filling_in_a_reference_leaves_a_given_one():
    given = RuleChoice("fedhv", {"reference": [2.0]})
    assert given.with_reference((9.0,)) == given


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fedpdc", {}, r"Unknown rule `fedpdc`. Did you mean `FedPCD`\?"),
        ("fedpcd", {"tua": 1}, r"hyperparameter of FedPCD `tua`. Did you mean `tau`\?"),
        ("fedpcd", {"tau": "x"}, r"`tau` must be a number or a list of numbers. Got 'x'."),
        ("fedpcd", {"tau": 3}, r"`tau` must be in \[0, 1\]. Got 3.0."),
        ("fedpcd", {"history": 2.5}, r"`history` must be a whole number. Got 2.5."),
        ("fedpcd", {"normalize": 1}, r"`normalize` must be true or false. Got 1."),
        ("fedpcd", {"infeasible": "x"}, "`infeasible` must be 'average' or 'protect' or 'raise'"),
        ("fedhv", {"server": "fedavk"}, r"Unknown rule `fedavk`. Did you mean `FedAvg`\?"),
        ("fedhv", {"server": 3}, r"`server` must be a rule or none. Got 3."),
    ],
)
def test_a_wrong_choice_is_refused_at_once(name: str, options: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        RuleChoice(name, options)


def test_a_choice_prints_what_differs_from_the_defaults():
    choice = RuleChoice("fedpcd", {"tau": 0.1, "normalize": False})
    assert str(choice) == "FedPCD:tau=0.1,normalize=false"


def test_partitions_are_found_in_the_data_package():
    assert {"iid", "client-dirichlet", "strata", "natural"} <= set(partition_functions())


def test_a_partition_needs_its_options():
    with pytest.raises(ValueError, match="partition `strata` needs `num_clients`"):
        PartitionChoice("strata", {"alpha": 0.3})


def test_a_partition_refuses_options_of_others():
    with pytest.raises(UnknownNameError, match=r"option of partition `iid` `alpha`"):
        PartitionChoice("iid", {"num_clients": 3, "alpha": 0.3})


def test_the_natural_partition_needs_natural_clients():
    with pytest.raises(ValueError, match="Partition `natural` needs data that come by client"):
        PartitionChoice("natural").split(load("fashion-mini"))


def test_models_are_found_in_the_models_module():
    assert {"lenet", "LeNetPair", "logistic"} <= set(model_factories())


def test_a_model_takes_its_sizes_from_the_data():
    model = ModelChoice("logistic").factory(load("heart"))()
    # 13 inputs and an intercept for each of two classes
    assert sum(parameter.numel() for parameter in model.parameters()) == 28


def test_sizes_that_follow_from_the_data_are_no_options():
    with pytest.raises(UnknownNameError, match="has no option `num_classes`"):
        ModelChoice("logistic", {"num_classes": 3})
