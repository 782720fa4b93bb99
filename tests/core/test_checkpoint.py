"""Checkpoints: whole or not at all, and nothing from a file but values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from common import classification_federation, make_cohort, spec
from fedaccord import (
    CheckpointError,
    FedAvg,
    FedHV,
    FedPCD,
    LocalSGD,
    TrainingState,
    load,
    save,
    save_model,
    simulate,
    start,
)
from fedaccord.checkpoint import read_stamp


def trained(rule: object) -> TrainingState:
    federation = classification_federation(4)
    return list(simulate(rule, federation, rounds=2, local=LocalSGD(lr=0.1)))[-1].training


def test_a_state_comes_back_as_it_was(tmp_path: Path):
    training = TrainingState(
        round=3,
        params=torch.tensor([1.0, 2.0]),
        rule_state=None,
        client_states={5: {"personal": torch.ones(2)}},
        buffers={"count": torch.tensor(4)},
        client_buffers={1: {"mean": torch.zeros(2)}},
    )
    save(tmp_path / "c", training)
    back = load(tmp_path / "c", FedAvg())
    assert (back.round, back.rule_state) == (3, None)
    assert torch.equal(back.params, training.params)
    assert torch.equal(back.client_states[5]["personal"], torch.ones(2))
    assert back.buffers["count"].dtype == torch.int64
    assert back.buffers["count"].dim() == 0
    assert list(back.client_buffers) == [1]


def test_another_rules_state_is_refused(tmp_path: Path):
    save(tmp_path / "c", trained(FedPCD()))
    with pytest.raises(CheckpointError, match="`FedPCDState`, which is not part of this rule's"):
        load(tmp_path / "c", FedAvg())


def test_a_composed_rule_may_hold_its_parts_states(tmp_path: Path):
    rule = FedHV([3.0], server=FedPCD())
    save(tmp_path / "c", trained(rule))
    assert load(tmp_path / "c", rule).rule_state.server.history.rounds == {0: 1, 1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("cut", [0, 1, 7, 100, -1])
def test_a_file_cut_short_is_refused(tmp_path: Path, cut: int):
    path = tmp_path / "c"
    save(path, trained(FedPCD()))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CheckpointError, match="no checkpoint, or it is cut short"):
        load(path, FedPCD())


def test_a_flipped_bit_is_found(tmp_path: Path):
    path = tmp_path / "c"
    save(path, trained(FedAvg()))
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        load(path, FedAvg())


def test_a_foreign_safetensors_file_is_refused(tmp_path: Path):
    save_file({"w": torch.ones(2)}, tmp_path / "c")
    with pytest.raises(CheckpointError, match="no checkpoint of fedaccord"):
        load(tmp_path / "c", FedAvg())


def by_hand(
    path: Path, tree: object, *, version: int = 1, tensors: dict[str, torch.Tensor] | None = None
) -> None:
    """A well-formed checkpoint that `save` would not write."""
    import fedaccord.checkpoint as module

    tensors = tensors or {"0": torch.ones(1)}
    header = {"version": version, "tree": tree, "checksum": module._checksum(tree, tensors)}
    save_file(tensors, path, metadata={module.FORMAT: json.dumps(header)})


def test_a_later_format_is_refused(tmp_path: Path):
    by_hand(tmp_path / "c", None, version=99)
    with pytest.raises(CheckpointError, match="version 99; this release reads 1"):
        load(tmp_path / "c", FedAvg())


def test_a_file_names_no_class_that_the_rule_does_not(tmp_path: Path):
    by_hand(tmp_path / "c", {"class": "LocalSGD", "fields": {"mapping": []}})
    with pytest.raises(CheckpointError, match="`LocalSGD`, which is not part"):
        load(tmp_path / "c", FedAvg())


def test_fields_that_do_not_fit_are_refused(tmp_path: Path):
    by_hand(tmp_path / "c", {"class": "TrainingState", "fields": {"mapping": [["mood", 1]]}})
    with pytest.raises(CheckpointError, match="`TrainingState` does not fit this release"):
        load(tmp_path / "c", FedAvg())


def test_a_missing_file_says_so(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        load(tmp_path / "nothing", FedAvg())


def test_a_state_that_cannot_be_saved_leaves_the_old_file(tmp_path: Path):
    @dataclass(frozen=True)
    class Odd:
        thing: object

    path = tmp_path / "c"
    training = trained(FedAvg())
    save(path, training)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="may hold tensors"):
        save(path, TrainingState(0, training.params, Odd(thing=object())))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_saving_twice_writes_the_same_bytes(tmp_path: Path):
    training = trained(FedPCD())
    save(tmp_path / "a", training)
    save(tmp_path / "b", training)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_saving_does_not_end_a_state(tmp_path: Path):
    rule = FedPCD(tau=0.1)
    state = rule.aggregate(rule.init(spec()), make_cohort([[1.0, 0.0], [-0.5, 1.0]])).state
    save(tmp_path / "c", TrainingState(1, torch.zeros(2), state))
    rule.aggregate(state, make_cohort([[1.0, 1.0]], round=1))


def test_the_trained_model_can_be_read_by_anyone(tmp_path: Path):
    federation = classification_federation(3)
    training = start(FedAvg(), federation)
    model = federation.module(training)
    save_model(tmp_path / "m.safetensors", model.state_dict())
    back = load_file(tmp_path / "m.safetensors")
    assert all(torch.equal(back[k], v) for k, v in model.state_dict().items())


HISTORY = {
    "clients": [0, 1],
    "rounds": [3, 4],
    "slots": [0, 1],
    "capacity": 2,
    "dtype": None,
    "vectors": {"tensor": "0"},
    "products": {"tensor": "1"},
}


def history_tree(**changes: object) -> object:
    parts = {**HISTORY, **changes}
    as_node = {k: {"tuple": v} if isinstance(v, list) else v for k, v in parts.items()}
    return {"class": "History", "fields": {"mapping": list(as_node.items())}}


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "save"},
        {"dtype": "int64"},
        {"slots": [0, -1]},
        {"slots": [0, 2]},
        {"slots": [0, 0]},
        {"slots": [0]},
        {"capacity": 1},
        {"capacity": "2"},
        {"clients": [0, 0]},
        {"vectors": {"tensor": "9"}},
        {"products": {"tensor": "0"}},
        {"vectors": 3},
    ],
    ids=str,
)
def test_a_history_that_cannot_be_is_refused(tmp_path: Path, changes: dict[str, object]):
    tensors = {"0": torch.ones(2, 3), "1": torch.full((2, 2), 3.0).double()}
    by_hand(tmp_path / "good", history_tree(), tensors=tensors)
    with pytest.raises(CheckpointError, match="does not hold a training state"):
        load(tmp_path / "good", FedPCD())  # the history itself is read
    by_hand(tmp_path / "bad", history_tree(**changes), tensors=tensors)
    with pytest.raises(CheckpointError, match="does not hold what this release writes"):
        load(tmp_path / "bad", FedPCD())


@pytest.mark.parametrize(
    "tree", [None, 3, [], {}, {"class": None}, {"tensor": "9"}, {"mapping": 3}, {"tuple": None}]
)
def test_a_tree_of_another_kind_is_refused(tmp_path: Path, tree: object):
    by_hand(tmp_path / "c", tree)
    with pytest.raises(CheckpointError):
        load(tmp_path / "c", FedPCD())


def test_files_have_the_usual_permissions(tmp_path: Path):
    (tmp_path / "usual").touch()
    save(tmp_path / "c", trained(FedAvg()))
    assert (tmp_path / "c").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_checkpoint_says_its_round_and_what_it_was_saved_with(tmp_path: Path):
    training = TrainingState(7, torch.zeros(2), None)
    save(tmp_path / "c", training, configuration="abc")
    stamp = read_stamp(tmp_path / "c")
    assert (stamp.round, stamp.configuration) == (7, "abc")
    assert load(tmp_path / "c", FedAvg()).round == 7


def test_what_a_checkpoint_was_saved_with_cannot_be_changed(tmp_path: Path):
    save(tmp_path / "c", TrainingState(7, torch.zeros(2), None), configuration="abc")
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content.replace(b"abc", b"abd"))
    with pytest.raises(CheckpointError, match="checksum does not match"):
        load(tmp_path / "c", FedAvg())
