"""Facts about what numbers are said to be about."""

from __future__ import annotations

import pytest

from fedaccord.metrics import Label, moment, populations


def test_a_label_reads_as_one_line():
    label = Label("personal", moment(3), "all clients", "each client counted once")
    assert str(label) == "personal model, after 3 rounds, all clients, each client counted once"


def test_moments():
    assert moment(0) == "before training"
    assert moment(1) == "after 1 round"
    assert moment(150, local_steps="before") == "after 150 rounds, before local steps"
    assert moment(150, local_steps="after") == "after 150 rounds, after local steps"
    with pytest.raises(ValueError, match="`rounds` must be at least 0. Got -1"):
        moment(-1)


def test_clients_are_split_by_what_the_model_has_seen():
    assert populations(5, [(3, 1), (1, 0)], held_out=[6, 5]) == {
        "all clients": (0, 1, 2, 3, 4),
        "clients sampled in this round": (0, 1),
        "clients sampled so far": (0, 1, 3),
        "never-sampled clients": (2, 4),
        "held-out clients": (5, 6),
    }


def test_before_training_nobody_was_sampled():
    found = populations(2, [])
    assert found["clients sampled in this round"] == found["clients sampled so far"] == ()
    assert found["never-sampled clients"] == (0, 1)


def test_held_out_clients_are_not_in_the_federation():
    with pytest.raises(ValueError, match="at least 3, that are not in the federation. Got 2"):
        populations(3, [], held_out=[2, 3])


def test_sampled_clients_are():
    with pytest.raises(ValueError, match=r"ids in \[0, 3\). Got 0 to 3"):
        populations(3, [(0, 3)])
