"""A cohort held against the `Spec` that the rule began with, in one place for every rule."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from common import flat_layout, spec
from fedaccord import Cohort, Layout, MalformedReplyError, MissingFieldError, Reply, Spec

LAYERS = Spec(Layout(("a", "b"), ((2,), (1,))), num_clients=3, num_tasks=2)


def stack(client: int = 0, **fields: Tensor) -> Cohort:
    good = {"update": torch.ones(3)}
    return Cohort.stack([Reply(client, 1, {**good, **fields})], spec=LAYERS)


def test_a_cohort_that_fits_knows_its_layout():
    assert stack().blocks == {"a": slice(0, 2), "b": slice(2, 3)}


@pytest.mark.parametrize("client", [3, 2**40])
def test_a_client_the_federation_does_not_have_is_refused(client: int):
    with pytest.raises(MalformedReplyError, match=rf"\[0, 3\).*from client {client}"):
        stack(client)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("update", torch.ones(2), r"`update` must have shape \(3,\). Got \(2,\) from client 0"),
        ("loss", torch.ones(1), r"`loss` must have shape \(\)"),
        ("train_loss", torch.ones(2), r"`train_loss` must have shape \(\)"),
        ("task_loss", torch.ones(3), r"`task_loss` must have shape \(2,\)"),
        ("task_update", torch.ones(3, 3), r"`task_update` must have shape \(2, 3\)"),
    ],
)
def test_a_field_of_another_shape_is_refused(name: str, value: Tensor, message: str):
    with pytest.raises(MalformedReplyError, match=message):
        stack(**{name: value})


def test_fields_of_ones_own_may_have_any_shape():
    assert stack(sketch=torch.ones(4, 5))["sketch"].shape == (1, 4, 5)


def test_a_layout_beside_the_spec_must_be_the_same():
    replies: list[Any] = [Reply(0, 1, {"update": torch.ones(2)})]
    assert Cohort.stack(replies, spec=spec(2), layout=flat_layout(2)).layout == flat_layout(2)
    with pytest.raises(ValueError, match="`layout` must be that of `spec`"):
        Cohort.stack(replies, spec=spec(2), layout=flat_layout(3))


def test_without_a_layout_the_error_says_what_to_pass():
    cohort = Cohort.stack([Reply(0, 1, {"update": torch.ones(2)})])
    with pytest.raises(MissingFieldError, match="Pass `spec=` or `layout=`"):
        cohort.blocks  # noqa: B018
