"""Matrices by property, and slow independent answers to compare with."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from hypothesis import strategies as st

KINDS = (
    "gaussian",
    "clustered",
    "duplicates",
    "low rank",
    "nearly parallel",
    "unequal lengths",
    "integers",
    "zeros",
)


def rows(kind: str, *, n: int, dim: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    plain = rng.standard_normal((n, dim))
    if kind == "clustered":
        return 0.3 * plain + rng.standard_normal(dim)
    if kind == "duplicates":
        distinct = plain[: max(1, n // 3)]
        return distinct[rng.integers(0, len(distinct), n)]
    if kind == "low rank":
        rank = max(1, dim // 3)
        return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, dim))
    if kind == "nearly parallel":
        return 1e-4 * plain + rng.standard_normal(dim)
    if kind == "unequal lengths":
        return plain * 10.0 ** rng.uniform(-2, 2, (n, 1))
    if kind == "integers":
        return rng.integers(-2, 3, (n, dim)).astype(np.float64)
    if kind == "zeros":
        plain[rng.random(n) < 0.3] = 0.0
    return plain


@st.composite
def matrices(draw: st.DrawFn, *, most_rows: int = 12, kinds: tuple[str, ...] = KINDS) -> np.ndarray:
    return rows(
        draw(st.sampled_from(kinds)),
        n=draw(st.integers(1, most_rows)),
        dim=draw(st.sampled_from([1, 2, 3, 5, 20])),
        seed=draw(st.integers(0, 2**31)),
    )


def tensor(values: object) -> torch.Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float64))


def gram_of(matrix: np.ndarray) -> torch.Tensor:
    return tensor(matrix @ matrix.T)


def nearest_by_enumeration(
    matrix: np.ndarray, start: np.ndarray, margins: np.ndarray
) -> np.ndarray | None:
    """Project by trying every set of active rows; ``None`` if no set satisfies the conditions."""
    best, best_error = None, 1e-7
    for size in range(min(len(matrix), matrix.shape[1]) + 1):
        for active in itertools.combinations(range(len(matrix)), size):
            part = matrix[list(active)]
            missing = margins[list(active)] - part @ start
            multipliers = np.linalg.lstsq(part @ part.T, missing, rcond=1e-12)[0]
            point = start + multipliers @ part
            error = max(
                np.max(margins - matrix @ point, initial=0.0), np.max(-multipliers, initial=0.0)
            )
            if error < best_error:
                best, best_error = point, error
    return best
