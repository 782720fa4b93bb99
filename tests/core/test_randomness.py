"""Random operations of models draw from the job's generator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedaccord import UncontrolledRandomnessError
from fedaccord.clients.randomness import SeededOperations, forbid_global_draws

X = torch.linspace(-1, 1, 64).reshape(1, 1, 8, 8)

OPERATIONS: dict[str, Callable[[], Tensor]] = {
    "dropout": lambda: functional.dropout(X),
    "dropout2d": lambda: functional.dropout2d(X.repeat(1, 8, 1, 1)),
    "alpha_dropout": lambda: functional.alpha_dropout(X, training=True),
    "rrelu": lambda: functional.rrelu(X, training=True),
    "gumbel_softmax": lambda: functional.gumbel_softmax(X),
    "rand": lambda: torch.rand(5),
    "randn": lambda: torch.randn(5),
    "rand_like": lambda: torch.rand_like(X),
    "randn_like": lambda: torch.randn_like(X),
    "randint": lambda: torch.randint(0, 1000, (5,)),
    "randperm": lambda: torch.randperm(50),
    "normal": lambda: torch.normal(X),
    "multinomial": lambda: torch.multinomial(torch.ones(50), 20),
    "bernoulli": lambda: torch.bernoulli(torch.full((50,), 0.5)),
    "in_place": lambda: torch.empty(5).uniform_(),
    "lstm_dropout": lambda: nn.LSTM(8, 3, 2, dropout=0.5)(X[0])[0],
    "attention_dropout": lambda: functional.scaled_dot_product_attention(X, X, X, dropout_p=0.5),
}


def drawn(operation: Callable[[], Tensor], seed: int) -> Tensor:
    with SeededOperations(torch.Generator().manual_seed(seed)).step():
        return operation()


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_depends_on_the_jobs_seed_and_on_nothing_else(name: str):
    operation = OPERATIONS[name]
    before = torch.random.get_rng_state()
    assert torch.equal(drawn(operation, 1), drawn(operation, 1))
    assert not torch.equal(drawn(operation, 1), drawn(operation, 2))
    assert torch.equal(before, torch.random.get_rng_state())


def test_dropout_keeps_its_distribution():
    with SeededOperations(torch.Generator().manual_seed(0)).step():
        out = functional.dropout(torch.ones(100_000), p=0.3)
    kept = out[out > 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.7))
    # binomial standard deviation sqrt(.3 * .7 / 1e5) = .0014
    assert abs(len(kept) / 100_000 - 0.7) < 5 * 0.0014


def test_the_fused_dropout_of_accelerators_is_sent_to_the_generator_too():
    def fused() -> Tensor:
        return torch.native_dropout(torch.ones(1000), 0.25, train=True)[0]

    assert torch.equal(drawn(fused, 1), drawn(fused, 1))
    torch.testing.assert_close(drawn(fused, 1).unique(), torch.tensor([0.0, 4 / 3]))


def test_a_model_without_random_operations_is_watched_for_one_minibatch_only():
    operations = SeededOperations(torch.Generator())
    with operations.step():
        torch.ones(3).sum()
    assert operations.step() is not operations


def test_a_model_that_drew_stays_watched():
    operations = SeededOperations(torch.Generator())
    with operations.step():
        functional.dropout(X)
    assert operations.step() is operations


def test_a_draw_that_comes_late_is_caught():
    with (
        pytest.raises(UncontrolledRandomnessError, match="global generator"),
        forbid_global_draws(),
    ):
        torch.rand(1)
    # the test itself moved the global generator: nothing else in the suite reads it


FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def test_an_operation_without_a_generator_is_refused():
    with pytest.raises(UncontrolledRandomnessError, match="flash_attention_for_cpu"):
        drawn(lambda: FLASH(X, X, X, dropout_p=0.5)[0], 0)


def test_an_operation_that_could_draw_but_does_not_is_let_through():
    query = X.repeat(1, 2, 1, 1)
    assert torch.equal(
        drawn(lambda: functional.scaled_dot_product_attention(query, query, query), 0),
        functional.scaled_dot_product_attention(query, query, query),
    )
