"""Facts about scores on each client's own test rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fedaccord.data import ArrayData
from fedaccord.metrics import (
    ClientScores,
    evaluate,
    evaluate_clients,
    score_for,
    value_scores,
)
from fedaccord.models import logistic

SIZES = (3, 0, 40, 1, 7)


def rows(size: int, *, seed: int = 0) -> ArrayData:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 5, generator=source)
    return ArrayData.of(x, torch.randint(0, 3, (size,), generator=source))


CLIENTS = [rows(size, seed=seed) for seed, size in enumerate(SIZES)]


def model(seed: int = 9) -> nn.Module:
    """A classifier with batch norm, whose running statistics are not those of its rows."""
    with torch.random.fork_rng():
        torch.default_generator.manual_seed(seed)
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


class Counting(nn.Module):
    """Passes logits on and notes the size of each batch."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sizes.append(len(x))
        return x[:, :3]


@pytest.mark.parametrize("batch_size", [1, 2, 8, 1000])
def test_clients_scored_together_are_as_scored_alone(batch_size):
    found = evaluate_clients(model(), CLIENTS, num_classes=3, batch_size=batch_size)
    for position, data in enumerate(CLIENTS):
        if len(data):
            alone = evaluate(model(), data, num_classes=3)
            assert_close(found.losses[position], alone.losses, rtol=1e-6, atol=0)  # float32 model
            assert torch.equal(found.accuracies[position], alone.accuracies)


def test_small_clients_share_a_batch():
    counting = Counting()
    evaluate_clients(counting, CLIENTS, batch_size=45)
    assert counting.sizes == [44, 7]  # 3 + 40 + 1, and 7 would not fit


def test_a_large_client_fills_several_batches():
    counting = Counting()
    evaluate_clients(counting, CLIENTS, batch_size=10)
    assert counting.sizes == [3, 10, 10, 10, 10, 8]  # 3, four times 10, and 1 + 7


def test_rows_of_other_shapes_are_not_stacked():
    class Mean(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(2)

    short = ArrayData.of(torch.ones(2, 3, 4), [0, 1])
    long = ArrayData.of(torch.ones(2, 3, 9), [0, 1])
    assert evaluate_clients(Mean(), [short, long]).accuracies.tolist() == [[0.5], [0.5]]


def test_a_model_that_mixes_examples_sees_each_client_by_itself():
    made = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8, track_running_stats=False))
    made.append(nn.Linear(8, 3))
    clients = [CLIENTS[0], CLIENTS[2]]
    found = evaluate_clients(made, clients)
    alone = [evaluate(made, data, num_classes=3).losses for data in clients]
    assert torch.equal(found.losses, torch.stack(alone))


def test_a_client_without_rows_has_nan_rather_than_zero():
    found = evaluate_clients(model(), CLIENTS)
    for values in (found.losses, found.accuracies, found.loss_errors, found.accuracy_errors):
        assert values[1].isnan().all()
    assert found.num_examples.tolist() == list(SIZES)
    assert found.missing == (1,)


def test_a_client_without_a_model_is_missing():
    found = evaluate_clients({0: model(), 2: None}, CLIENTS)
    assert found.client_ids == (0, 1, 2, 3, 4)
    assert found.missing == (1, 2, 3, 4)


def test_each_client_is_scored_by_its_own_model():
    own = {client: model(client) for client in (4, 0, 2)}
    found = evaluate_clients(own.items(), CLIENTS, client_ids=own, num_classes=3)
    assert found.client_ids == (0, 2, 4)
    for position, client in enumerate(found.client_ids):
        alone = evaluate(own[client], CLIENTS[client], num_classes=3)
        assert torch.equal(found.losses[position], alone.losses)


def test_an_iterator_is_asked_for_one_model_at_a_time():
    counting = Counting()

    def models():
        for client in (0, 2):
            before = len(counting.sizes)
            yield client, counting
            assert len(counting.sizes) == before + 1  # scored before the next one is asked for

    evaluate_clients(models(), CLIENTS)


def test_a_sequential_model_is_one_model_though_it_can_be_iterated():
    assert evaluate_clients(nn.Sequential(nn.Linear(5, 3)), CLIENTS).missing == (1,)


def test_standard_errors_are_those_of_a_mean():
    # logits (0, d): the loss of label 0 is log(1 + e^d)
    gaps = torch.tensor([-1.0, 0.0, 2.0, 5.0])
    data = ArrayData.of(torch.stack([torch.zeros(4), gaps], 1), [0, 0, 0, 0])
    found = evaluate_clients(nn.Identity(), [data])
    losses = [math.log1p(math.exp(gap)) for gap in gaps.tolist()]
    assert found.loss_errors.item() == pytest.approx(np.std(losses, ddof=1) / 2, rel=1e-6)
    assert found.accuracies.item() == 0.5
    assert found.accuracy_errors.item() == math.sqrt(0.5 * 0.5 / 4)


def test_one_row_tells_nothing_about_the_noise_of_its_loss():
    found = evaluate_clients(model(), CLIENTS, client_ids=[3])
    assert found.loss_errors.isnan().all()
    assert found.losses.isfinite().all()


def test_the_scores_of_some_clients():
    found = evaluate_clients(model(), CLIENTS)
    some = found.of([4, 0])
    assert some.client_ids == (0, 4)
    assert torch.equal(some.losses, found.losses[[0, 4]])
    assert some.num_examples.tolist() == [3, 7]
    assert found.of([]).losses.shape == (0, 1)
    with pytest.raises(ValueError, match=r"Clients \[8\] have not been evaluated"):
        found.of([0, 8])


def test_regression_has_losses_and_no_accuracies():
    data = ArrayData.of([[1.0], [3.0]], [0.0, 0.0])
    found = evaluate_clients(nn.Identity(), [data], score=value_scores)
    assert found.losses.tolist() == [[5.0]]  # (1 + 9) / 2
    assert (found.accuracies, found.accuracy_errors, found.concordances) == (None, None, None)
    with pytest.raises(ValueError, match="need tasks with classes"):
        found.accuracy_intervals()


def test_survival_has_one_index_per_client():
    # risks in the order of events, and against it; nobody's event is known at the third
    clients = [
        ArrayData.of([[2.0], [1.0]], [[1.0, 1.0], [2.0, 1.0]]),
        ArrayData.of([[1.0], [2.0]], [[1.0, 1.0], [2.0, 1.0]]),
        ArrayData.of([[1.0], [2.0]], [[1.0, 0.0], [2.0, 0.0]]),
    ]
    found = evaluate_clients(nn.Identity(), clients, score=score_for(["survival"]))
    assert found.concordances[:2].tolist() == [1.0, 0.0]
    assert found.concordances[2].isnan()
    assert found.losses[2].isnan()
    assert found.missing == (2,)


def test_a_label_out_of_range_names_the_client():
    clients = [rows(3), ArrayData.of(torch.zeros(2, 5), [0, 2])]
    with pytest.raises(ValueError, match=r"Client 1: Labels of task 0 must be in \[0, 2\)"):
        evaluate_clients({1: logistic(5, 3)}, clients, num_classes=2, client_ids=[1])


def test_a_diverged_model_names_the_client():
    broken = nn.Linear(5, 3)
    nn.init.constant_(broken.weight, math.nan)
    with pytest.raises(ValueError, match="Client 2: .*answers with NaN"):
        evaluate_clients({0: nn.Linear(5, 3), 2: broken}, CLIENTS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"client_ids": [9]}, r"None for \[9\]"),
        ({"client_ids": [1, 1]}, "must be distinct"),
        ({"client_ids": [1]}, "At least one client must have a test row and a model"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"num_classes": (3, 3)}, r"one entry per task. Got \(3, 3\)"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate_clients(model(), CLIENTS, **arguments)


def test_a_client_named_twice_is_refused():
    with pytest.raises(ValueError, match="names client 0 twice"):
        evaluate_clients([(0, model()), (0, model())], CLIENTS)


def test_test_rows_must_be_data():
    with pytest.raises(TypeError, match="test rows of client 0 must have `batch"):
        evaluate_clients(model(), [torch.zeros(3)])


@pytest.mark.parametrize("models", [logistic, [(0, logistic)]])
def test_a_factory_is_no_model(models):
    with pytest.raises(TypeError, match=r"`federation.module\(training\)`.* Got function"):
        evaluate_clients(models, CLIENTS)


def test_the_scores_are_one_row_per_client_and_one_column_per_task():
    class Pair(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x[:, :3], x[:, 3:]

    data = ArrayData.of(torch.zeros(2, 5), [[0, 0], [1, 1]])
    found = evaluate_clients(Pair(), [data], num_classes=(3, 2))
    assert isinstance(found, ClientScores)
    assert found.losses[0].tolist() == pytest.approx([math.log(3), math.log(2)], rel=1e-6)
    assert found.accuracies.tolist() == [[0.5, 0.5]]
