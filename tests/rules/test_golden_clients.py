"""Five rounds of every rule that changes the clients or wraps another, against a plain version.

The files in ``golden`` hold what `plain_client_rules` made of its federation, in NumPy, at the time
of writing. `python tests/rules/test_golden_clients.py` writes them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedaccord import (
    GIFAIR,
    SCAFFOLD,
    TERM,
    Ditto,
    FedAvg,
    FedDyn,
    FedProx,
    LocalOnly,
    LocalSGD,
    PropFair,
    Rule,
    ServerAdagrad,
    ServerAdam,
    ServerMomentum,
    ServerYogi,
)
from rules import plain_client_rules as plain
from rules.quadratics import quadratics, rounds_of

GOLDEN = Path(__file__).parent / "golden"
ORIGIN = "tests/rules/plain_client_rules.py: the formulas in plain NumPy, without the package"

ADAPTIVE = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 1e-3, "v0": 1e-6}
RULES: dict[str, tuple[Rule[Any], Callable[[], Any]]] = {
    "term": (TERM(0.5), lambda: plain.term(0.5)),
    "term_legacy": (TERM(0.5, legacy=True), lambda: plain.term_legacy(0.5)),
    "gifair": (GIFAIR(0.6), lambda: plain.gifair(0.6)),
    "fedprox": (FedProx(0.7), lambda: plain.fedprox(0.7)),
    "propfair": (PropFair(6.0, 1.0), lambda: plain.propfair(6.0, 1.0, huber=False)),
    "propfair_huber": (
        PropFair(6.0, 1.0, huber=True),
        lambda: plain.propfair(6.0, 1.0, huber=True),
    ),
    "scaffold": (SCAFFOLD(server_lr=0.8), lambda: plain.scaffold(0.8)),
    "feddyn": (FedDyn(0.3), lambda: plain.feddyn(0.3)),
    "ditto": (Ditto(0.4), lambda: plain.ditto(0.4)),
    "localonly": (LocalOnly(), plain.localonly),
    "serveradam": (ServerAdam(FedAvg()), lambda: plain.fedopt("adam", **ADAPTIVE)),
    "serveryogi": (ServerYogi(FedAvg()), lambda: plain.fedopt("yogi", **ADAPTIVE)),
    "serveradagrad": (ServerAdagrad(FedAvg()), lambda: plain.fedopt("adagrad", **ADAPTIVE)),
    "servermomentum": (
        ServerMomentum(FedAvg(), beta=0.5, server_lr=0.7),
        lambda: plain.momentum(lr=0.7, beta=0.5),
    ),
}
FEDERATION = quadratics(
    [{"a": client.a, "c": client.c.tolist()} for client in plain.CLIENTS],
    num_examples=[client.n for client in plain.CLIENTS],
)
LOCAL = LocalSGD(lr=plain.LR, steps=plain.STEPS, batch_size=100)


def plain_numbers(name: str) -> dict[str, Any]:
    """The plain version's trajectory, and the clients' own models where they have some."""
    made = RULES[name][1]()
    params, own = made if isinstance(made, tuple) else (made, {})
    numbers: dict[str, Any] = {"params": [w.tolist() for w in params]}
    if own:
        numbers["personal"] = [own[client].tolist() for client in sorted(own)]
    return numbers


def golden(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", RULES)
def test_five_rounds_go_where_the_plain_version_went(name: str):
    results = rounds_of(RULES[name][0], FEDERATION, plain.ASKED, LOCAL)
    found = torch.stack([result.training.params for result in results])
    wanted = golden(name)
    # a few units in the last place, five rounds of three steps long
    torch.testing.assert_close(
        found, torch.tensor(wanted["params"], dtype=torch.float64), rtol=1e-12, atol=1e-13
    )
    states = results[-1].training.client_states
    for client, personal in enumerate(wanted.get("personal", [])):
        torch.testing.assert_close(
            states[client]["personal"],
            torch.tensor(personal, dtype=torch.float64),
            rtol=1e-12,
            atol=1e-13,
        )


@pytest.mark.parametrize("name", RULES)
def test_the_plain_version_still_gives_the_stored_numbers(name: str):
    again, stored = plain_numbers(name), golden(name)
    assert again.keys() == stored.keys() - {"origin"}
    for key, values in again.items():
        np.testing.assert_allclose(values, stored[key], rtol=1e-12, atol=1e-13)


if __name__ == "__main__":
    for name in RULES:
        text = json.dumps({"origin": ORIGIN, **plain_numbers(name)}, indent=1)
        (GOLDEN / f"{name}.json").write_text(text + "\n", "utf-8")
