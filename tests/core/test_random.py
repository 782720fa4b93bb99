"""Derived randomness."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedaccord.random import derive, generator

PARTS = st.lists(st.one_of(st.text(max_size=5), st.integers(-5, 5)), max_size=4)


def test_a_stream_has_the_same_seed_on_every_machine():
    # blake2b of the length-prefixed parts, worked out once with hashlib alone
    import hashlib

    digest = hashlib.blake2b(digest_size=8)
    for text in (b"i7", b"sclient", b"i3"):
        digest.update(len(text).to_bytes(8, "big") + text)
    assert derive(7, "client", 3) == int.from_bytes(digest.digest(), "big") >> 1


@given(PARTS, PARTS)
def test_different_paths_have_different_seeds(a: list[str | int], b: list[str | int]):
    assert (derive(0, *a) == derive(0, *b)) == (a == b)


def test_a_string_and_an_integer_are_different_parts():
    assert derive(0, "1") != derive(0, 1)


def test_the_seed_matters():
    a, b = (torch.rand(3, generator=generator(seed, "x")) for seed in (0, 1))
    assert not torch.equal(a, b)


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    torch.rand(3, generator=generator(0, "x"))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("part", [1.5, None, True])
def test_other_parts_are_refused(part: object):
    with pytest.raises(TypeError, match="strings and integers"):
        derive(0, part)
