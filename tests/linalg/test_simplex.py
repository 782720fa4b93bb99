from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from fedaccord.linalg import project_onto_simplex

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "examples.json").read_text())
WORKED = next(e for e in EXAMPLES if e["algorithm"] == "project_simplex")
VECTORS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("vector", "expected"),
    list(zip(WORKED["inputs"]["y"], WORKED["expected"]["projection"], strict=True)),
)
def test_worked_example(vector, expected):
    result = project_onto_simplex(torch.tensor(vector))
    assert_close(result, torch.tensor(expected).double(), rtol=0, atol=WORKED["tolerance"])


@given(VECTORS)
def test_the_projection_lies_in_the_simplex(vector):
    result = project_onto_simplex(torch.tensor(vector, dtype=torch.float64))
    assert (result >= 0).all()
    assert float(result.sum()) == pytest.approx(1.0, abs=1e-12)


@given(VECTORS)
def test_no_vertex_lies_on_the_far_side(vector):
    # variational inequality: (y - p)'(v - p) <= 0 for every vertex v characterises the projection
    y = torch.tensor(vector, dtype=torch.float64)
    p = project_onto_simplex(y)
    outward = y - p
    assert float(outward.max() - outward @ p) <= 1e-12 * max(1.0, float(y.abs().max()))


def test_a_point_of_the_simplex_stays():
    point = torch.tensor([0.25, 0.5, 0.25, 0.0], dtype=torch.float64)
    assert_close(project_onto_simplex(point), point, rtol=0, atol=1e-16)


def test_a_single_entry_becomes_one():
    assert torch.equal(project_onto_simplex(torch.tensor([-3.0])), torch.ones(1).double())


def test_huge_entries_keep_their_exact_difference():
    # the shift by 1e15 changes nothing: differences 0 and 0.5 give (0.25, 0.75)
    result = project_onto_simplex(torch.tensor([1e15, 1e15 + 0.5], dtype=torch.float64))
    assert torch.equal(result, torch.tensor([0.25, 0.75], dtype=torch.float64))


@pytest.mark.parametrize("bad", [torch.zeros(0), torch.zeros(2, 2)])
def test_wrong_shapes_are_rejected(bad):
    with pytest.raises(ValueError, match="shape \\[n\\]"):
        project_onto_simplex(bad)


def test_nan_is_rejected():
    with pytest.raises(ValueError, match="finite"):
        project_onto_simplex(torch.tensor([float("nan"), 1.0]))
