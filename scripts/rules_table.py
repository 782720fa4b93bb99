"""Write the table of the page "Which rule?" from the rules themselves.

    python scripts/rules_table.py [--check]

The idea comes from each rule's class, what clients report from its ``needs``, what it promises from
its ``claims``; what server and clients keep is measured: eight clients, two a round, after every
client has taken part, and again after many rounds without most of them. Cost and known weaknesses
are the first paragraphs below those headings on the rule's page. With ``--check`` nothing is
written, and a table that is not up to date is an error.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedaccord import Federation, History, LocalSGD, Rule, rules, run_round, start
from fedaccord.data import ArrayData

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "which-rule.md"
BEGIN, END = "<!-- table: scripts/rules_table.py -->", "<!-- end of table -->"
CLIENTS, DIM, LONG = 8, 400, 20

# rules that have no default for a hyperparameter
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "AFL": {"lr_lambda": 0.01},
    "Ditto": {"lam": 1.0},
    "FedDyn": {"alpha": 0.1},
    "FedHV": {"reference": (9.0, 9.0)},
    "FedProx": {"mu": 0.1},
    "QFedAvg": {"q": 1.0},
    "TERM": {"t": 1.0},
    "ServerAdagrad": {"rule": rules.FedAvg()},
    "ServerAdam": {"rule": rules.FedAvg()},
    "ServerMomentum": {"rule": rules.FedAvg()},
    "ServerYogi": {"rule": rules.FedAvg()},
}
WORDS = {
    "update": "",
    "loss": "loss of the received model",
    "task_loss": "each task's loss",
    "train_loss": "mean loss while training",
    "client_lr": "learning rate",
    "control_update": "control update",
    "task_update": "an update a task",
}
CLAIMS = {
    "non_conflicting": "no step against a client of the round",
    "keeps_mean_norm": "as long as the average",
    "scale_equivariant": "scales with the updates",
}


class Point(nn.Module):
    """A model that is its parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(DIM))


def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """The squared distance to a batch's points, for one task or two."""
    distance = ((model.w - batch[0]) ** 2).mean()
    return distance.reshape(1)


def two_losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """The same for two tasks."""
    return losses(model, batch).repeat(2)


def numbers_in(value: Any) -> int:
    """How many numbers a state holds."""
    if isinstance(value, Tensor):
        return value.numel()
    if isinstance(value, History):
        # memory grows by doubling: what counts are the rows in use
        return len(value.rounds) * DIM
    if isinstance(value, Mapping):
        return sum(map(numbers_in, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(numbers_in, value))
    if dataclasses.is_dataclass(value):
        return sum(numbers_in(getattr(value, part.name)) for part in dataclasses.fields(value))
    return int(isinstance(value, int | float))


def kept(rule: Rule[Any]) -> tuple[int, int, int]:
    """Numbers kept by the server, by it after long absences, and by all clients together."""
    tasks = 2 if isinstance(rule, rules.FedHV | rules.Uniform) else 1
    points = torch.randn(CLIENTS, 4, DIM, generator=torch.Generator().manual_seed(0)) + 1
    federation = Federation(
        Point,
        losses if tasks == 1 else two_losses,
        [ArrayData((each,)) for each in points],
        num_tasks=tasks,
    )
    training = start(rule, federation)
    local = LocalSGD(lr=0.1, batch_size=2)
    for first in range(0, CLIENTS, 2):
        ids = (first, first + 1)
        training = run_round(rule, federation, training, client_ids=ids, local=local).training
    found = numbers_in(training.rule_state), numbers_in(training.client_states)
    for _ in range(LONG):
        training = run_round(rule, federation, training, client_ids=(0, 1), local=local).training
    return found[0], numbers_in(training.rule_state), found[1]


def at_the_server(numbers: int, later: int) -> str:
    """Say how much that is, in vectors as long as the model.

    :param numbers: After all clients took part.
    :param later: After most were absent for long.
    """
    vectors = round(numbers / DIM)
    if vectors >= CLIENTS / 2:
        whose = "ever seen" if later >= numbers else "seen recently"
        return f"a vector for each client {whose}"
    if vectors:
        return "a vector" if vectors == 1 else f"{vectors} vectors"
    return "a few numbers" if numbers else "nothing"


def at_a_client(numbers: int) -> str:
    """The same for one of the clients."""
    vectors = round(numbers / DIM / CLIENTS)
    return "nothing" if vectors == 0 else "a vector" if vectors == 1 else f"{vectors} vectors"


def first_line(rule: type[Rule[Any]]) -> str:
    """The first line of a docstring, without the marks of its markup."""
    line = (rule.__doc__ or "").strip().splitlines()[0]
    return re.sub(r":math:`([^`]*)`", r"$\1$", line).replace("``", "`")


def paragraph(module: str, heading: str) -> str:
    """The first paragraph below a heading of a rule's page.

    :raises SystemExit: If the page has none.
    """
    text = (ROOT / "docs" / "rules" / f"{module}.md").read_text(encoding="utf-8")
    pattern = rf"^## {heading}[^\n]*\n+(.+?)(?:\n\n|\Z)"
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if not found:
        raise SystemExit(f"docs/rules/{module}.md needs a section `## {heading}`.")
    # links of a page start in its own folder
    return re.sub(r"\]\((?=\w+\.md)", "](rules/", " ".join(found[1].split()))


def row(name: str) -> str:
    """The row of a rule."""
    kind = getattr(rules, name)
    module = kind.__module__.rpartition(".")[2]
    rule = kind(**NEEDED.get(name, {}))
    asked = [word for field in rule.needs["train"] if (word := WORDS[field])]
    promised = [words for key, words in CLAIMS.items() if getattr(rule.claims, key)]
    server, later, clients = kept(rule)
    cells = (
        f"[{name}](rules/{module}.md)",
        first_line(kind),
        ", ".join(asked) or "nothing more",
        at_the_server(server, later),
        at_a_client(clients),
        "; ".join(promised) or "nothing",
        paragraph(module, "Cost"),
        paragraph(module, "Known weaknesses"),
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The whole table."""
    names = [n for n in rules.__all__ if isinstance(getattr(rules, n), type)]
    names = [n for n in names if issubclass(getattr(rules, n), Rule)]
    head = (
        "| rule | idea | clients report beside the update | server keeps | a client keeps | "
        "promised of a step (tested) | cost | known weaknesses |"
    )
    return "\n".join(
        [head, "|---|---|---|---|---|---|---|---|", *map(row, sorted(names, key=str.lower))]
    )


def main() -> None:
    """Read the command line, and write or check."""
    parser = argparse.ArgumentParser(description="Write the table of rules.")
    parser.add_argument("--check", action="store_true", help="fail if it is not up to date")
    chosen = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"
    if chosen.check:
        sys.exit(None if made == text else f"{PAGE.name} is not up to date: run {__file__}.")
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
