"""Facts about one pass over a test set and about what is made of it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from fedaccord.data import ArrayData
from fedaccord.metrics import (
    Evaluation,
    class_scores,
    class_shares,
    client_accuracies,
    evaluate,
    hypervolume,
    score_for,
    survival_scores,
    task_summary,
    value_scores,
)
from fedaccord.models import LeNetPair, lenet

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text("utf-8"))
VOLUME = next(e for e in EXAMPLES if e["algorithm"] == "fedhv_metrics")

# logits of four examples; the model that passes them on makes every score computable by hand
LOGITS = [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
LABELS = [0, 1, 2, 0]


class Split(nn.Module):
    """Two tasks read off one input: columns 0-2 and 3-4."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[:, :3].log_softmax(1), x[:, 3:].log_softmax(1)


def scored(**changes: object) -> Evaluation:
    arguments = {"num_classes": (3,)} | changes
    return evaluate(nn.Identity(), ArrayData.of(LOGITS, LABELS), **arguments)


def test_accuracy_is_the_fraction_whose_largest_logit_is_the_label():
    assert scored().accuracies.tolist() == [0.75]  # the third is wrong; a tie takes the first


def test_loss_is_the_mean_cross_entropy():
    # log of the sum of exponentials minus the label's logit, by hand
    expected = (
        (math.log(math.e**2 + 2) - 2)
        + (math.log(math.e + 2) - 1)
        + math.log(math.e**3 + 2)
        + math.log(3)
    ) / 4
    assert scored().losses.tolist() == pytest.approx([expected], rel=1e-6)


def test_class_accuracies_are_within_each_class():
    found = scored()
    assert found.class_accuracies[0].tolist() == [1.0, 1.0, 0.0]
    assert found.class_counts[0].tolist() == [2, 1, 1]


def test_a_class_without_examples_has_no_accuracy():
    assert scored(num_classes=(4,)).class_accuracies[0][3].isnan()


@pytest.mark.parametrize("batch_size", [1, 3, 4, 100])
def test_the_batch_size_changes_nothing(batch_size):
    found, expected = scored(batch_size=batch_size), scored()
    assert_close(found.losses, expected.losses)
    assert torch.equal(found.accuracies, expected.accuracies)


def test_tasks_are_scored_apart():
    inputs = [[5.0, 0.0, 0.0, 0.0, 1.0], [5.0, 0.0, 0.0, 1.0, 0.0]]
    data = ArrayData.of(inputs, [[0, 1], [1, 1]])
    found = evaluate(Split(), data, num_classes=(3, 2))
    assert found.accuracies.tolist() == [0.5, 0.5]
    assert found.class_accuracies[0].tolist()[:2] == [1.0, 0.0]
    assert found.class_accuracies[1].tolist()[1] == 0.5
    second = (math.log(1 + math.e) * 2 - 1) / 2  # logits (0, 1) and (1, 0), label 1
    assert found.losses[1].item() == pytest.approx(second, rel=1e-6)


def test_dropout_is_off_and_the_flags_are_restored():
    model = LeNetPair()
    model.rep.eval()
    flags = [module.training for module in model.modules()]
    data = ArrayData.of(torch.randn(5, 1, 28, 28, generator=torch.Generator()), [[0, 1]] * 5)
    state = torch.get_rng_state()
    first, second = (evaluate(model, data, num_classes=(10, 10)) for _ in range(2))
    assert torch.equal(first.losses, second.losses)
    assert torch.equal(torch.get_rng_state(), state)
    assert [module.training for module in model.modules()] == flags


def test_the_flags_are_restored_after_an_error():
    model = lenet()
    with pytest.raises(RuntimeError):
        evaluate(model, ArrayData.of([[1.0]], [0]), num_classes=(10,))
    assert all(module.training for module in model.modules())


def test_no_gradient_is_left():
    model = lenet()
    data = ArrayData.of(torch.zeros(2, 1, 28, 28), [0, 1])
    assert not evaluate(model, data, num_classes=(10,)).losses.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_model_that_answers_nan_has_no_score():
    data = ArrayData((torch.tensor([[math.nan, 0.0]]), torch.tensor([0])))
    with pytest.raises(ValueError, match="answers with NaN"):
        evaluate(nn.Identity(), data, num_classes=(2,))


def test_no_examples_have_no_score():
    with pytest.raises(ValueError, match="at least one example"):
        evaluate(nn.Identity(), ArrayData.of(LOGITS, LABELS).subset([]), num_classes=(3,))


def test_a_factory_is_no_model():
    with pytest.raises(TypeError, match=r"`federation.module\(training\)`. Got function"):
        evaluate(lenet, ArrayData.of(LOGITS, LABELS), num_classes=3)


def test_a_batch_has_a_size():
    with pytest.raises(ValueError, match="`batch_size` must be at least 1. Got 0."):
        scored(batch_size=0)


def test_labels_outside_the_classes_are_refused():
    with pytest.raises(ValueError, match=r"task 0 must be in \[0, 2\). Got 0 to 2"):
        scored(num_classes=(2,))


def test_the_number_of_tasks_must_agree():
    with pytest.raises(ValueError, match=r"one entry per task. Got \(3, 3\) for 1 tasks"):
        scored(num_classes=(3, 3))
    with pytest.raises(ValueError, match="Got 2 outputs for labels of 1 tasks"):
        evaluate(Split(), ArrayData.of([[0.0] * 5], [0]), num_classes=(3,))


@pytest.mark.parametrize("label", [-100, -1, 3])
def test_a_label_the_model_has_no_output_for_is_named_before_the_loss_is_computed(label):
    # cross-entropy would leave out -100 without a word and fail at the others
    data = ArrayData.of(LOGITS, [0, 1, label, 0])
    with pytest.raises(ValueError, match=r"Labels of task 0 must be in \[0, 3\). .* outputs"):
        evaluate(nn.Identity(), data, num_classes=3)


def test_labels_are_integers():
    with pytest.raises(ValueError, match=r"Labels must be integers. .* `score=value_scores`"):
        evaluate(nn.Identity(), ArrayData.of(LOGITS, [0.0, 1.0, 2.0, 0.0]), num_classes=3)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_labels_may_be_integers_of_any_size(dtype):
    data = ArrayData((torch.tensor(LOGITS), torch.tensor(LABELS, dtype=dtype)))
    assert evaluate(nn.Identity(), data, num_classes=3).accuracies.tolist() == [0.75]


def test_the_number_of_classes_may_be_numpys():
    assert torch.equal(scored(num_classes=np.int64(3)).accuracies, scored().accuracies)


def test_the_number_of_classes_is_needed_for_classes():
    with pytest.raises(ValueError, match="`num_classes` must be given"):
        scored(num_classes=None)


# --- numbers


class Columns(nn.Module):
    """Two numbers per example, as one tensor a task."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[:, 0], x[:, 1:]


INPUTS, TARGETS = [[1.0, 2.0], [3.0, 0.0]], [[0.0, 2.0], [1.0, 4.0]]


@pytest.mark.parametrize("model", [nn.Identity(), Columns()])
def test_the_loss_of_numbers_is_the_mean_squared_error_of_each_task(model):
    found = evaluate(model, ArrayData.of(INPUTS, TARGETS), score=value_scores)
    assert found.losses.tolist() == [2.5, 8.0]  # (1 + 4) / 2 and (0 + 16) / 2
    assert (found.accuracies, found.class_accuracies, found.class_counts) == (None, (), ())


def test_a_column_of_predictions_is_not_spread_over_the_targets():
    # [2, 1] minus [2] would be [2, 2]
    data = ArrayData.of([[1.0], [3.0]], [1.0, 3.0])
    assert evaluate(nn.Identity(), data, score=value_scores).losses.tolist() == [0.0]


def test_numbers_need_one_output_per_task():
    with pytest.raises(ValueError, match="Got 2 numbers for targets of 1 tasks"):
        evaluate(nn.Identity(), ArrayData.of(INPUTS, [0.0, 1.0]), score=value_scores)


def test_numbers_have_no_classes():
    with pytest.raises(ValueError, match="must be None for tasks without classes"):
        evaluate(
            nn.Identity(), ArrayData.of(INPUTS, TARGETS), score=value_scores, num_classes=(2, 2)
        )


def test_the_summary_of_numbers_has_no_accuracies():
    found = evaluate(nn.Identity(), ArrayData.of(INPUTS, TARGETS), score=value_scores)
    summary = task_summary(found, tasks=("a", "b"), moment="after 3 rounds")
    assert (summary.losses, summary.mean_loss) == ((2.5, 8.0), 5.25)
    assert (summary.accuracies, summary.mean_accuracy, summary.worst_accuracy) == (None, None, None)
    assert (summary.hypervolume, summary.reference, summary.unit_losses) == (None, None, None)
    assert str(summary).startswith("a loss 2.5000, b loss 8.0000; mean loss 5.2500 (global model")


def test_losses_of_standardised_targets_come_in_their_own_unit_too():
    found = evaluate(nn.Identity(), ArrayData.of(INPUTS, TARGETS), score=value_scores)
    summary = task_summary(found, tasks=("a", "b"), moment="m", target_scales=[2.0, 0.5])
    assert summary.unit_losses == (10.0, 2.0)  # times the square of the scale
    with pytest.raises(ValueError, match="above 0, one per task, 2 of them"):
        task_summary(found, tasks=("a", "b"), moment="m", target_scales=[2.0])


def test_numbers_have_a_hypervolume_below_a_reference_of_their_own():
    found = evaluate(nn.Identity(), ArrayData.of(INPUTS, TARGETS), score=value_scores)
    assert task_summary(found, tasks="ab", moment="m", reference=10.0).hypervolume == 15.0


def test_the_kind_of_tasks_chooses_the_score():
    assert score_for(("classes", "classes")) is class_scores
    assert score_for(["values"]) is value_scores
    assert score_for(["survival"]) is survival_scores


@pytest.mark.parametrize("kinds", [["classes", "values"], ["survival", "survival"]])
def test_mixtures_of_kinds_need_a_score_of_ones_own(kinds):
    with pytest.raises(ValueError, match="Write a `score` function"):
        score_for(kinds)


@pytest.mark.parametrize("kinds", [[], ["class"]])
def test_kinds_have_names(kinds):
    with pytest.raises(ValueError, match="must be one of"):
        score_for(kinds)


# --- clients


def test_shares_count_each_clients_classes():
    shares = class_shares([0, 0, 1, 2], [[0, 1], [1, 2, 3, 3]], num_classes=3)
    assert shares.tolist() == [[1, 0, 0], [0.25, 0.25, 0.5]]


def test_a_clients_accuracy_mixes_class_accuracies_by_its_shares():
    shares = torch.tensor([[0.25, 0.75], [1.0, 0.0]], dtype=torch.float64)
    assert client_accuracies([0.8, 0.4], shares).tolist() == pytest.approx([0.5, 0.8])


def test_a_client_that_is_like_the_test_set_has_the_pooled_accuracy():
    labels = torch.randint(0, 5, (200,), generator=torch.Generator().manual_seed(0))
    logits = torch.randn(200, 5, generator=torch.Generator().manual_seed(1))
    found = evaluate(nn.Identity(), ArrayData.of(logits, labels), num_classes=(5,))
    shares = class_shares(labels, [torch.arange(200).numpy()], num_classes=5)
    assert_close(client_accuracies(found.class_accuracies[0], shares), found.accuracies)


def test_a_class_the_client_does_not_have_does_not_matter():
    shares = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert client_accuracies([0.5, math.nan], shares).tolist() == [0.5]


def test_a_class_without_test_examples_leaves_its_clients_without_a_value():
    shares = torch.tensor([[0.9, 0.1], [1.0, 0.0]], dtype=torch.float64)
    found = client_accuracies([0.5, math.nan], shares)
    assert found[0].isnan()
    assert found[1] == 0.5


def test_c09_a_client_without_samples_has_no_value_rather_than_zero():
    shares = class_shares([0, 1], [[], [0]], num_classes=2)
    found = client_accuracies([0.5, 0.5], shares)
    assert found[0].isnan()
    assert found[1] == 0.5


@pytest.mark.parametrize("part", [[0, -1], [0, 2]])
def test_an_index_out_of_range_names_the_client(part):
    with pytest.raises(ValueError, match=r"client 1 must hold indices in \[0, 2\)"):
        class_shares([0, 1], [[0], part], num_classes=2)


@pytest.mark.parametrize("part", [np.array([True, False]), [0.0], [[0]]])
def test_parts_are_lists_of_integers(part):
    with pytest.raises(ValueError, match=r"client 0 must be integers \[k\]"):
        class_shares([0, 1], [part], num_classes=2)


def test_labels_of_several_tasks_are_refused_with_the_fix():
    with pytest.raises(ValueError, match=r"labels\[:, task\]"):
        class_shares(torch.zeros(3, 2, dtype=torch.int64), [[0]], num_classes=2)


def test_labels_beyond_the_classes_are_refused():
    with pytest.raises(ValueError, match=r"must be in \[0, 2\). Got 0 to 2"):
        class_shares([0, 2], [[0]], num_classes=2)


def test_shares_of_other_classes_are_refused():
    with pytest.raises(ValueError, match=r"Got \(2,\) and \(1, 3\)"):
        client_accuracies([0.5, 0.5], torch.ones(1, 3))


# --- tasks


def test_the_hypervolume_of_the_worked_example():
    inputs = VOLUME["inputs"]
    found = hypervolume(inputs["losses"], inputs["r_eval"])
    assert found == pytest.approx(VOLUME["expected"]["hv"], abs=VOLUME["tolerance"])


@pytest.mark.parametrize("losses", [[3.0, 0.1], [3.5, 3.5], [math.inf, 0.1]])
def test_the_hypervolume_is_zero_once_a_loss_reaches_the_reference(losses):
    assert hypervolume(losses) == 0.0  # two negative slacks would multiply to a positive number


def test_the_hypervolume_takes_a_reference_per_task():
    assert hypervolume([0.5, 1.0], [2.0, 3.0]) == 3.0
    with pytest.raises(ValueError, match="Got 3 for 2 tasks"):
        hypervolume([0.5, 1.0], [2.0, 3.0, 4.0])


def test_the_task_summary_holds_the_worked_example():
    inputs, expected = VOLUME["inputs"], VOLUME["expected"]
    evaluation = Evaluation(
        losses=torch.tensor(inputs["losses"], dtype=torch.float64),
        accuracies=torch.tensor(inputs["accuracies"], dtype=torch.float64),
        class_accuracies=(),
        class_counts=(),
        num_examples=1,
    )
    summary = task_summary(evaluation, tasks=("object", "digit"), moment="after round 500")
    found = (
        summary.hypervolume,
        summary.mean_loss,
        summary.mean_accuracy,
        summary.worst_accuracy,
    )
    assert found == pytest.approx(
        (expected["hv"], expected["mean_loss"], expected["mean_acc"], expected["worst_acc"]),
        abs=VOLUME["tolerance"],
    )


def test_the_task_summary_prints_its_label_and_tasks():
    text = str(task_summary(scored(), tasks=("item",), moment="after round 150"))
    for part in ("item 0.7500", "global model", "after round 150", "each example counted once"):
        assert part in text


def test_tasks_must_be_named():
    with pytest.raises(ValueError, match="must name 1 tasks"):
        task_summary(scored(), tasks=("a", "b"), moment="after round 1")
