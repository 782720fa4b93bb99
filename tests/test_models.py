"""Facts about the reference models and losses."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fedaccord.metrics import class_scores, value_scores
from fedaccord.models import (
    LeNetPair,
    char_lstm,
    cnn,
    cox_loss,
    cross_entropy,
    lenet,
    linear,
    logistic,
    losses_for,
    mlp,
    multi_task_nll,
    resnet20,
    squared_error,
)


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


# --- more models


@pytest.mark.parametrize(
    ("channels", "side", "classes", "parameters"),
    [
        # 64 (25 c + 1) + 64 (25 * 64 + 1) + 385 * ..., summed by hand; 797,962 is FedDyn's figure
        (3, 32, 10, 797_962),
        (3, 32, 100, 797_962 + 90 * 193),
        (1, 28, 10, 797_962 - 2 * 25 * 64 - 576 * 384),
    ],
)
def test_the_cnn_has_the_benchmarks_size(channels, side, classes, parameters):
    model = cnn(num_classes=classes, in_channels=channels)
    assert count(model) == parameters
    assert model(noise(2, channels, side, side)).shape == (2, classes)


def test_the_cnns_dropout_can_be_left_out():
    rates = [module.p for module in cnn().modules() if isinstance(module, nn.Dropout)]
    assert rates == [0.2, 0.5]
    assert not any(isinstance(m, nn.Dropout) for m in cnn(dropout=(0.0, 0.0)).modules())


@pytest.mark.parametrize(
    "options", [{"in_channels": 2}, {"dropout": (0.1, 1.0)}, {"dropout": (0.1,)}]
)
def test_the_cnn_refuses_what_it_cannot_be(options):
    with pytest.raises(ValueError, match="must be"):
        cnn(**options)


def test_resnet20_has_the_papers_size_and_no_buffers():
    model = resnet20()
    assert count(model) == 269_722  # 0.27 million in He et al., table 6
    assert sum(isinstance(module, nn.Conv2d) for module in model.modules()) == 19
    assert not list(model.buffers())


@pytest.mark.parametrize(("channels", "side"), [(3, 32), (1, 28)])
def test_resnet20_takes_both_sizes_of_pictures(channels, side):
    assert resnet20(7, channels)(noise(2, channels, side, side)).shape == (2, 7)


def test_a_residual_block_with_silent_convolutions_is_its_shortcut():
    blocks = [module for module in resnet20().modules() if hasattr(module, "new_channels")]
    assert [block.new_channels for block in blocks] == [0, 0, 0, 16, 0, 0, 32, 0, 0]
    x = noise(2, 16, 8, 8).abs()
    for block, expected in ((blocks[0], x), (blocks[3], x[:, :, ::2, ::2])):
        with torch.no_grad():
            block.convolutions[-1].weight.zero_()
            block.convolutions[-1].bias.zero_()
        out = block(x)
        assert_close(out[:, :16], expected)
        assert not out[:, 16:].any()


def test_the_mlp_is_the_2nn_of_the_fedavg_paper():
    assert count(mlp(784, 10)) == 199_210  # their published size
    assert mlp(784, 10)(noise(3, 1, 28, 28)).shape == (3, 10)
    assert mlp(5, 2, hidden=())(noise(3, 5)).shape == (3, 2)


def test_the_mlps_layers_are_not_empty():
    with pytest.raises(ValueError, match="`hidden` must be widths of at least 1"):
        mlp(5, 2, hidden=(4, 0))


def test_linear_regression_has_an_output_a_task():
    assert linear(18, 2)(noise(3, 18)).shape == (3, 2)
    assert count(linear(39)) == 40


def test_the_character_model_answers_for_the_last_character():
    model = char_lstm(76, hidden=16)
    x = torch.randint(76, (3, 20), generator=torch.Generator().manual_seed(0))
    assert model(x).shape == (3, 76)
    expected = model.head(model.lstm(model.embedding(x))[0])[:, 19]
    assert_close(model(x), expected)
    # embedding 8 V, layers 4 h (8 + h + 2) and 4 h (2 h + 2), output (h + 1) V
    assert count(char_lstm(76)) == 8 * 76 + 1024 * 266 + 1024 * 514 + 257 * 76


@pytest.mark.parametrize(
    "make",
    [
        lambda: cnn(dropout=(0.0, 0.0)),
        resnet20,
        lambda: mlp(3072, 10),
        lambda: char_lstm(10, hidden=8),
    ],
)
def test_a_step_reaches_every_parameter_of_each_model(make):
    model = make()
    text = model.__class__.__name__ == "_CharLSTM"
    x = torch.arange(80).reshape(8, 10) % 10 if text else noise(8, 3, 32, 32)
    cross_entropy(model, (x, torch.arange(8))).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


# --- more losses


class Answer(nn.Module):
    """Answers with what it was made with."""

    def __init__(self, *values: torch.Tensor) -> None:
        super().__init__()
        self.values = values

    def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        return self.values[0] if len(self.values) == 1 else self.values


def test_squared_error_is_the_mean_of_each_task():
    y = torch.tensor([[1.0, 0.0], [3.0, 2.0]])
    loss = squared_error(Answer(torch.tensor([[0.0, 1.0], [1.0, 5.0]])), (y, y))
    assert_close(loss, torch.tensor([(1 + 4) / 2, (1 + 9) / 2]))


@pytest.mark.parametrize(
    ("answer", "targets"),
    [
        ((noise(4, 1),), noise(4)),
        ((noise(4),), noise(4, 1)),
        ((noise(4, 2),), noise(4, 2)),
        ((noise(4), noise(4, 1)), noise(4, 2)),
    ],
)
def test_squared_errors_average_to_the_training_loss(answer, targets):
    batch = (targets, targets)
    scores = value_scores(Answer(*answer), batch)
    assert_close(squared_error(Answer(*answer), batch), scores.losses.mean(0))


def test_one_number_for_two_tasks_is_refused():
    with pytest.raises(ValueError, match="Got 1 numbers for targets of 2 tasks"):
        squared_error(Answer(noise(4, 1)), (noise(4), noise(4, 2)))


def survival(times: list[float], events: list[float]) -> torch.Tensor:
    return torch.tensor([times, events]).T


def test_cox_loss_of_a_worked_example():
    # events at 1 and 3; at risk are all three at 1 and the last alone at 3
    y = survival([1.0, 2.0, 3.0], [1.0, 0.0, 1.0])
    risks = torch.tensor([0.5, -1.0, 2.0])
    expected = (math.log(math.exp(0.5) + math.exp(-1) + math.exp(2)) - 0.5 + 0) / 2
    assert_close(cox_loss(Answer(risks), (risks, y)), torch.tensor([expected]))


def test_ties_are_at_risk_together_as_breslow_has_it():
    y = survival([1.0, 1.0, 2.0], [1.0, 1.0, 0.0])
    risks = torch.tensor([[0.3], [-0.2], [0.1]])
    total = math.log(math.exp(0.3) + math.exp(-0.2) + math.exp(0.1))
    expected = ((total - 0.3) + (total + 0.2)) / 2
    assert_close(cox_loss(Answer(risks), (risks, y)), torch.tensor([expected]))


def test_cox_loss_is_the_mean_over_the_events_written_out():
    times = torch.randint(1, 9, (40,), generator=torch.Generator().manual_seed(1)).float()
    y, risks = torch.stack([times, (times % 2 == 0).float()], 1), noise(40)
    terms = []
    for time, event, risk in zip(*y.T.tolist(), risks.tolist(), strict=True):
        if event:
            at_risk = [r for t, r in zip(times.tolist(), risks.tolist(), strict=True) if t >= time]
            terms.append(math.log(sum(map(math.exp, at_risk))) - risk)
    assert_close(cox_loss(Answer(risks), (risks, y)), torch.tensor([sum(terms) / len(terms)]))


def test_a_batch_without_an_event_gives_a_zero_loss_with_a_zero_gradient():
    model = linear(3)
    loss = cox_loss(model, (noise(4, 3), survival([1.0, 2.0, 3.0, 4.0], [0.0] * 4)))
    loss.sum().backward()
    assert loss.tolist() == [0.0]
    assert not model.weight.grad.any()


def test_large_risks_do_not_overflow():
    y, risks = survival([1.0, 2.0], [1.0, 1.0]), torch.tensor([1000.0, -1000.0])
    assert_close(cox_loss(Answer(risks), (risks, y)), torch.tensor([0.0]))


@pytest.mark.parametrize(
    ("risks", "y"), [(noise(4, 2), survival([1.0] * 4, [1.0] * 4)), (noise(4), noise(4))]
)
def test_cox_loss_refuses_other_shapes(risks, y):
    with pytest.raises(ValueError, match=r"Targets must be \[b, 2\]"):
        cox_loss(Answer(risks), (risks, y))


@pytest.mark.parametrize(
    ("kinds", "losses"),
    [
        (("classes",), cross_entropy),
        (("classes", "classes"), multi_task_nll),
        (("values",), squared_error),
        (("values", "values"), squared_error),
        (("survival",), cox_loss),
    ],
)
def test_the_loss_follows_from_what_the_tasks_predict(kinds, losses):
    assert losses_for(kinds) is losses


@pytest.mark.parametrize("kinds", [(), ("classes", "values"), ("survival",) * 2, ("ranks",)])
def test_other_mixtures_of_tasks_need_a_loss_of_their_own(kinds):
    with pytest.raises(ValueError, match="`kinds` must all be"):
        losses_for(kinds)
