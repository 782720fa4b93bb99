"""Five rounds of every server-side rule on a tiny federation, against an independent version.

The files in ``golden`` hold what `plain_server_rules` made of the federation below, in NumPy, at
the time of writing. `python tests/rules/test_golden_server.py` writes them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from common import Rows, make_cohort
from fedaccord import (
    AFL,
    CRAFT,
    Federation,
    FedFV,
    FedHEAL,
    FedLF,
    FedMGDAPlus,
    FedPW,
    Layout,
    LocalSGD,
    QFedAvg,
    Rule,
    Spec,
    run_round,
    start,
)
from rules import plain_server_rules as plain

GOLDEN = Path(__file__).parent / "golden"
ORIGIN = "tests/rules/plain_server_rules.py: the formulas in plain NumPy, without the package"

NUM_CLIENTS, DIM, LR = 5, 8, 0.1
BLOCKS = [slice(0, 4), slice(4, 6), slice(6, 8)]  # first.weight, first.bias, second.weight
MODULES = [slice(0, 6), slice(6, 8)]
ASKED = [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2], [3, 4], [0, 2, 4]]

RULES: dict[str, tuple[Rule[Any], Callable[[plain.Round, Any], Any]]] = {
    "afl": (AFL(0.01), plain.afl(0.01)),
    "qfedavg": (QFedAvg(2.0), plain.qfedavg(2.0)),
    "fedmgdaplus": (FedMGDAPlus(0.1), plain.fedmgdaplus(0.1)),
    "fedfv": (FedFV(alpha=0.1, tau=2), plain.fedfv(0.1, 2)),
    "fedlf": (FedLF(), plain.fedlf()),
    "fedheal": (FedHEAL(), plain.fedheal(0.3, 0.4)),
    "fedpw": (FedPW(), plain.fedpw(0.3, 0.3)),
    "fedpw-unbounded": (FedPW(bounded=False), plain.fedpw(0.3, 0.3, bounded=False)),
    "craft": (CRAFT(), plain.craft(0.1, MODULES)),
}


def data(client: int) -> tuple[np.ndarray, np.ndarray]:
    """A client's points ``[1 + client % 3, 8]`` and curvatures ``[8]``."""
    k, j = np.ogrid[: 1 + client % 3, :DIM]
    points = 0.2 + np.sin(1.0 + 3 * client + k + 2.0 * j * (client + 1))
    return points, 1 + 0.5 * np.cos(client + np.arange(DIM))


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2, dtype=torch.float64)
        self.second = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


def distance(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    points, curvatures = batch
    w = torch.cat([p.reshape(-1) for p in model.parameters()])
    return (curvatures * (w - points) ** 2).sum(1).mean().reshape(1) / 2


def federation() -> Federation:
    clients = []
    for client in range(NUM_CLIENTS):
        points, curvatures = (torch.from_numpy(v) for v in data(client))
        clients.append(Rows(points, curvatures.expand_as(points)))
    return Federation(TwoLayers, distance, clients)


def trajectory(rule: Callable[[plain.Round, Any], Any]) -> list[list[float]]:
    """Two full-batch steps at every client asked, then the rule; all of it in NumPy."""
    theta, state, seen = np.zeros(DIM), None, []
    for t, ids in enumerate(ASKED):
        deltas, losses, trained = [], [], []
        for client in ids:
            points, curvatures = data(client)
            w, on_the_way = theta, []
            for _ in range(2):
                on_the_way.append((curvatures * (w - points) ** 2).sum(axis=1).mean() / 2)
                w = w - LR * curvatures * (w - points.mean(axis=0))
            deltas.append(theta - w)
            losses.append(on_the_way[0])
            trained.append(np.mean(on_the_way))
        counts = np.array([1.0 + client % 3 for client in ids])
        step, state = rule(
            plain.Round(
                t, ids, np.array(deltas), counts, np.array(losses), np.array(trained), LR, BLOCKS,
                NUM_CLIENTS,
            ),
            state,
        )  # fmt: skip
        theta = theta - step
        seen.append(theta.tolist())
    return seen


def golden(name: str) -> list[list[float]]:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["params"]


@pytest.mark.parametrize("name", RULES)
def test_five_rounds_go_where_the_plain_version_went(name: str):
    rule, place = RULES[name][0], federation()
    training = start(rule, place, state_dict=TwoLayers().state_dict())
    local = LocalSGD(lr=LR, batch_size=100, epochs=2)
    for ids, wanted in zip(ASKED, golden(name), strict=True):
        training = run_round(rule, place, training, client_ids=ids, local=local).training
        wanted = torch.tensor(wanted, dtype=torch.float64)
        torch.testing.assert_close(training.params, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", RULES)
def test_the_plain_version_still_gives_the_stored_numbers(name: str):
    # sines and least squares may differ in the last digits from one machine to another
    np.testing.assert_allclose(trajectory(RULES[name][1]), golden(name), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", RULES)
def test_the_trajectory_moves_in_every_round_that_can(name: str):
    points = np.array([np.zeros(DIM), *golden(name)])
    assert (np.linalg.norm(np.diff(points, axis=0), axis=1) > 1e-3).sum() >= 4


LAYOUT = Layout(("a.weight", "a.bias", "s", "b.weight"), ((4, 6), (6,), (1,), (30,)))
SIZES = [slice(0, 24), slice(24, 30), slice(30, 31), slice(31, 61)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RULES)
def test_random_rounds_agree_with_the_plain_version(name: str, seed: int):
    rule, version = RULES[name]
    if name == "craft":
        version = plain.craft(0.1, [slice(0, 30), slice(30, 31), slice(31, 61)])
    rng = np.random.default_rng(seed)
    state, other = rule.init(Spec(LAYOUT, 6)), None
    for t in range(4):
        n = int(rng.integers(2, 5))
        ids = sorted(rng.permutation(6)[:n].tolist())
        deltas = rng.normal(size=(n, 61)) + rng.normal(size=61) * rng.choice([0.0, 0.5, 2.0])
        deltas *= rng.choice([0.1, 1.0, 10.0], size=(n, 1))
        losses, trained = rng.uniform(0.1, 3.0, size=(2, n))
        counts = rng.integers(1, 9, size=n)
        cohort = make_cohort(
            torch.from_numpy(-deltas), client_ids=ids, num_examples=counts.tolist(), round=t,
            loss=losses.tolist(), train_loss=trained.tolist(), client_lr=[LR] * n,
        )  # fmt: skip
        step, state, seen = rule.aggregate(state, replace(cohort, layout=LAYOUT))
        if seen.get("weights_kept"):
            break  # the papers' formula divides by a sum that is not positive
        wanted, other = version(
            plain.Round(t, ids, deltas, counts, losses, trained, LR, SIZES, 6), other
        )
        np.testing.assert_allclose(-step.numpy(), wanted, rtol=0, atol=1e-9 * abs(wanted).max())


if __name__ == "__main__":
    for name, (_, rule) in RULES.items():
        text = json.dumps({"origin": ORIGIN, "params": trajectory(rule)}, indent=1)
        (GOLDEN / f"{name}.json").write_text(text + "\n", "utf-8")
