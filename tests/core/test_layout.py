"""The correspondence between a model and a vector."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedaccord import Layout, Spec


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))


def test_the_vector_holds_trainable_parameters_only():
    net = model()
    net[0].bias.requires_grad_(False)
    names = ("0.weight", "1.weight", "1.bias", "2.weight", "2.bias")
    assert Layout.of(net).names == names  # neither the frozen bias nor the running statistics


def test_dim_counts_every_entry():
    assert Layout.of(model()).dim == 2 * 3 + 3 + 3 + 3 + 3 + 1


def test_writing_what_was_flattened_gives_the_model_back():
    net, other = model(), model()
    layout = Layout.of(net)
    layout.write(layout.flatten(net), other)
    for a, b in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_flattened_vector_shares_no_memory_with_the_model():
    net = nn.Linear(2, 1, bias=False)
    vector = Layout.of(net).flatten(net)
    before = vector.clone()
    net.weight.data += 1
    assert torch.equal(vector, before)


def test_unflattening_gives_views():
    layout = Layout(("a", "b"), ((2, 2), (3,)))
    vector = torch.arange(7.0)
    parts = layout.unflatten(vector)
    parts["b"][0] = -1
    assert vector[4] == -1
    assert parts["a"].shape == (2, 2)


def test_a_scalar_parameter_has_one_entry():
    layout = Layout(("a", "b"), ((), (2,)))
    assert layout.blocks == {"a": slice(0, 1), "b": slice(1, 3)}


def test_columns_come_in_model_order():
    layout = Layout(("a", "b", "c"), ((2,), (1,), (2,)))
    assert layout.columns(["c", "a"]).tolist() == [0, 1, 3, 4]


def test_unknown_columns_are_named():
    with pytest.raises(ValueError, match=r"no \['z'\]"):
        Layout(("a",), ((2,),)).columns(["z"])


def test_a_model_without_trainable_parameters_is_refused():
    net = nn.Linear(1, 1).requires_grad_(False)
    with pytest.raises(ValueError, match="requires_grad=True"):
        Layout.of(net)


@pytest.mark.parametrize("shape", [(3,), (2, 2), ()])
def test_a_vector_of_another_shape_is_refused(shape: tuple[int, ...]):
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        Layout(("a",), ((4,),)).unflatten(torch.zeros(shape))


def test_a_missing_tensor_is_named():
    with pytest.raises(ValueError, match="needs `b`"):
        Layout(("a", "b"), ((1,), (1,))).flatten({"a": torch.zeros(1)})


def test_a_spec_needs_clients_and_tasks():
    with pytest.raises(ValueError, match="num_tasks"):
        Spec(Layout(("a",), ((1,),)), 1, 0)


def test_complex_parameters_are_refused():
    net = nn.Module()
    net.weight = nn.Parameter(torch.zeros(1, dtype=torch.complex64))
    with pytest.raises(
        ValueError, match="real floating-point numbers. `weight` is torch.complex64"
    ):
        Layout.of(net)


def test_parameters_of_different_types_come_back_in_their_own():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1).double())
    layout = Layout.of(net)
    vector = layout.flatten(net)
    layout.write(vector, net)
    assert vector.dtype == torch.float64
    assert [p.dtype for p in net.parameters()] == [torch.float32] * 2 + [torch.float64] * 2
