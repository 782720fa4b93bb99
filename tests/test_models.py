"""Facts about the reference models and losses."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fedaccord.metrics import class_scores
from fedaccord.models import LeNetPair, cross_entropy, lenet, logistic, multi_task_nll


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


class Fixed(nn.Module):
    """Answers with two tasks' log-probabilities, whatever the input."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = torch.tensor([[0.5, 0.5]]).log().expand(len(x), 2)
        second = torch.tensor([[0.25, 0.75]]).log().expand(len(x), 2)
        return first, second


def test_lenet_has_61706_parameters():
    assert count(lenet()) == 61_706  # the published size of LeNet-5


def test_lenet_gives_one_logit_per_class():
    assert lenet(num_classes=7, in_channels=3)(noise(2, 3, 28, 28)).shape == (2, 7)


def test_dropout_adds_layers_but_no_parameters():
    model = lenet(dropout=0.5)
    assert count(model) == 61_706
    assert sum(isinstance(module, nn.Dropout) for module in model.modules()) == 2
    assert not any(isinstance(module, nn.Dropout) for module in lenet().modules())


@pytest.mark.parametrize("dropout", [-0.1, 1.0, math.nan])
def test_dropout_is_a_probability(dropout):
    with pytest.raises(ValueError, match=r"`dropout` must be in \[0, 1\)"):
        lenet(dropout=dropout)


def test_the_pair_has_the_benchmarks_parameter_counts():
    model = LeNetPair()  # expected: the table of the benchmark's authors' model
    assert count(model) == 34_635
    assert count(model.rep) == 28_515
    assert [count(head) for head in model.heads] == [3060, 3060]


def test_the_pair_answers_with_log_probabilities_of_each_task():
    outputs = LeNetPair()(noise(3, 1, 28, 28))
    assert [output.shape for output in outputs] == [(3, 10), (3, 10)]
    for output in outputs:
        assert_close(output.exp().sum(1), torch.ones(3))


def test_every_parameter_is_shared_or_belongs_to_one_task():
    names = [name for name, _ in LeNetPair().named_parameters()]
    assert {name.split(".")[0] for name in names} == {"rep", "heads"}
    assert {name.split(".")[1] for name in names if name.startswith("heads")} == {"0", "1"}


def test_logistic_regression_is_one_layer():
    assert count(logistic(13)) == 13 * 2 + 2


def test_cross_entropy_is_one_task():
    loss = cross_entropy(nn.Identity(), (torch.zeros(4, 10), torch.tensor([0, 1, 2, 3])))
    assert_close(loss, torch.tensor([math.log(10)]))  # uniform prediction


def test_the_loss_of_each_task_is_its_mean_negative_log_likelihood():
    loss = multi_task_nll(Fixed(), (torch.zeros(2, 1), torch.tensor([[0, 0], [1, 1]])))
    expected = [math.log(2), -(math.log(0.25) + math.log(0.75)) / 2]
    assert_close(loss, torch.tensor(expected))


def test_scores_average_to_the_training_losses():
    model = LeNetPair().eval()
    labels = torch.tensor([[1, 2], [3, 4], [5, 6]])
    batch = (noise(3, 1, 28, 28), labels)
    scores = class_scores(model, batch)
    assert_close(scores.losses.mean(0), multi_task_nll(model, batch))
    assert torch.equal(scores.labels, labels)


def test_a_training_step_reaches_every_parameter():
    model = LeNetPair(dropout=0.0)
    multi_task_nll(
        model, (noise(8, 1, 28, 28), torch.zeros(8, 2, dtype=torch.int64))
    ).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
