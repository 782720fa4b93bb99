"""Keys in the wrong place: the message says where they belong."""

from __future__ import annotations

import pytest

from fedaccord import UnknownNameError
from fedaccord.experiments import from_table, override, preset

TABLE = {**preset("fashion-mini"), "rule": {"name": "FedPCD"}}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("lr", "Unknown key `lr`. It belongs to [local], as `local.lr`."),
        ("tau", "Unknown key `tau`. It belongs to [rule], as `rule.tau`."),
        (
            "local.tau",
            "Unknown key in [local] `tau`. It belongs to [rule], as `rule.tau`.",
        ),
        (
            "rule.count",
            "Unknown key in [rule] `count`. It belongs to [sampler], as `sampler.count`.",
        ),
        (
            "partition.fraction",
            "Unknown key in [partition] `fraction`. It belongs to [sampler], as "
            "`sampler.fraction`.",
        ),
        (
            "local.rounds",
            "Unknown key in [local] `rounds`. It belongs to the top, above every [table] or to "
            "[calibration], as `calibration.rounds`.",
        ),
        (
            "local.num_client",
            "Unknown key in [local] `num_client`. Did you mean `num_clients`? It belongs to "
            "[partition], as `partition.num_clients`.",
        ),
        ("loca.lr", "Unknown key `loca`. Did you mean `local`? Known: "),
        ("local.momentun", "Unknown key in [local] `momentun`. Did you mean `momentum`? Known: "),
        ("rule.tua", "Unknown hyperparameter of FedPCD `tua`. Did you mean `tau`? Known: "),
        (
            "partition.alhpa",
            "Unknown option of partition `client-dirichlet` `alhpa`. Did you mean `alpha`? ",
        ),
        ("model.dropuot", "Unknown option of model `lenet` `dropuot`. Did you mean `dropout`?"),
    ],
)
def test_a_misplaced_key_is_refused(key: str, message: str):
    with pytest.raises(UnknownNameError) as raised:
        from_table(override(TABLE, {key: 1}))
    assert str(raised.value).startswith(message)


def test_what_a_table_takes_depends_on_the_rule_in_it():
    # FedAvg has no tau, so that it belongs nowhere
    with pytest.raises(UnknownNameError, match=r"hyperparameter of FedAvg `tau`"):
        from_table(override(TABLE, {"rule.name": "fedavg", "rule.tau": 0.1}))


def test_of_an_unknown_rule_the_rule_is_named_and_not_its_options():
    with pytest.raises(UnknownNameError, match="Unknown rule `fedpdc`"):
        from_table({**TABLE, "rule": {"name": "fedpdc", "tau": 0.1}})
