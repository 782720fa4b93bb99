"""The history: what it holds, its products, and who owns its memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from common import examples, make_cohort
from fedaccord import Cohort, History, NonFiniteError, StaleHistoryError


def rows_of(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cohort_of(seed: int, ids: list[int], *, round: int, dim: int = 5) -> Cohort:
    return make_cohort(rows_of(seed, len(ids), dim), client_ids=sorted(ids), round=round)


def test_the_window_of_the_specification():
    (example,) = (e for e in examples("fedpcd_cache") if e["name"] == "cache_window")
    window, history, absent = example["inputs"]["H"], History(), []
    for entry in example["inputs"]["rounds"]:
        cohort = cohort_of(0, entry["clients"], round=entry["round"])
        history = history.forget(before=entry["round"] - window)
        absent.append(sorted(history.absent(cohort)))
        history = history.record(cohort)
    assert absent == example["expected"]["extra_constraint_clients_per_round"]


@given(st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=12))
def test_products_equal_those_of_the_rows_themselves(rounds: list[set[int]]):
    history, last = History(), {}
    for round, ids in enumerate(rounds):
        history = history.forget(before=round - 3)
        cohort = cohort_of(round, sorted(ids), round=round)
        rows = history.join(cohort)
        vectors = dict(zip(cohort.client_ids, cohort.updates, strict=True))
        absent = [c for c, (seen, _) in sorted(last.items()) if seen >= round - 3 and c not in ids]
        matrix = torch.stack([*vectors.values(), *(last[c][1] for c in absent)])
        assert rows.client_ids == (*cohort.client_ids, *absent)
        # an independent dense product; float64, five terms
        torch.testing.assert_close(rows.gram, matrix @ matrix.T, rtol=1e-12, atol=1e-12)
        weights = rows_of(round + 100, len(matrix))
        torch.testing.assert_close(rows.combine(weights), weights @ matrix)
        history = history.record(cohort, rows)
        last |= {c: (round, vector) for c, vector in vectors.items()}


def test_a_zero_update_is_not_kept_and_ends_what_was_kept():
    history = History().record(make_cohort([[1.0, 0.0], [0.0, 1.0]]))
    history = history.record(make_cohort([[0.0, 0.0]], client_ids=[1], round=1))
    assert history.rounds == {0: 0}


def test_recording_leaves_the_old_history_usable_until_the_new_one_is_read():
    old = History().record(cohort_of(0, [0, 1], round=0))
    before = {c: v.clone() for c, v in old.updates.items()}
    new = old.record(cohort_of(1, [1, 2], round=1))
    assert all(torch.equal(v, before[c]) for c, v in old.updates.items())
    assert list(new.updates) == [0, 1, 2]
    with pytest.raises(StaleHistoryError, match="belongs to a later one"):
        _ = old.updates


def test_two_histories_from_one_point_cannot_both_go_on():
    old = History().record(cohort_of(0, [0, 1], round=0))
    _ = old.updates
    left, right = (old.record(cohort_of(seed, [1], round=1)) for seed in (1, 2))
    _ = left.updates
    with pytest.raises(StaleHistoryError):
        _ = right.updates


def test_a_copy_goes_on_by_itself():
    old = History().record(cohort_of(0, [0, 1], round=0))
    copy = old.copy()
    _ = old.record(cohort_of(1, [0, 1], round=1)).updates
    assert torch.equal(copy.updates[0], cohort_of(0, [0, 1], round=0).updates[0])


def test_memory_is_reused_not_grown_when_clients_return():
    history = History()
    for round in range(30):
        history = history.forget(before=round - 2).record(cohort_of(round, [0, 1], round=round))
    assert history.pack()["capacity"] == 2


def test_forgetting_a_client_erases_its_row():
    history = History().record(make_cohort([[1.0, 2.0], [3.0, 4.0]]))
    kept = history.forget_client(0)
    assert list(kept.updates) == [1]
    assert not (kept._memory.vectors == 1.0).any()
    with pytest.raises(StaleHistoryError):
        _ = history.updates


def test_forgetting_a_client_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="Client 9"):
        History().forget_client(9)


def test_unpacking_gives_the_same_bytes_from_then_on():
    first = History()
    for round in range(4):
        first = first.forget(before=round - 2)
        first = first.record(cohort_of(round, [round, round + 1], round=round, dim=1000))
    second = History.unpack(first.pack())
    for round in range(4, 8):
        cohort = cohort_of(round, [round % 3, round], round=round, dim=1000)
        here, there = (h.forget(before=round - 2) for h in (first, second))
        rows, again = here.join(cohort), there.join(cohort)
        assert torch.equal(rows.gram, again.gram)
        first, second = here.record(cohort, rows), there.record(cohort, again)


def test_a_smaller_dtype_keeps_the_products_of_the_rounded_rows():
    history = History(dtype=torch.bfloat16).record(cohort_of(0, [0, 1], round=0))
    rounded = torch.stack(list(history.updates.values())).double()
    assert history.updates[0].dtype == torch.bfloat16
    gram = history.join(cohort_of(1, [2], round=1)).gram[1:, 1:]
    torch.testing.assert_close(gram, rounded @ rounded.T, rtol=1e-12, atol=0)


def test_a_value_too_large_for_the_dtype_is_an_error():
    history = History(dtype=torch.float16)
    with pytest.raises(NonFiniteError, match="client 0 in round 0 is too large or too small"):
        history.record(make_cohort([[1e6, 0.0]]))


def test_a_copy_of_a_history_of_zero_updates_goes_on_by_itself():
    history = History().record(make_cohort([[0.0, 0.0]]))
    copy = history.copy()
    _ = history.record(make_cohort([[1.0, 0.0]], round=1)).updates
    assert dict(copy.record(make_cohort([[0.0, 2.0]], round=1)).updates) != {}


def test_a_block_is_the_same_rows_in_fewer_columns():
    history = History().record(cohort_of(0, [3, 5, 7], round=0)).forget_client(5)
    rows = history.join(cohort_of(1, [1, 3], round=1))
    block = rows.block(slice(1, 4))
    whole = torch.stack([rows.combine(c) for c in torch.eye(3, dtype=torch.float64)])
    torch.testing.assert_close(block.gram, whole[:, 1:4] @ whole[:, 1:4].T)
    coefficients = torch.tensor([0.5, -2.0, 3.0], dtype=torch.float64)
    assert torch.equal(block.combine(coefficients), rows.combine(coefficients)[1:4])
    assert block.client_ids == rows.client_ids == (1, 3, 7)
