"""Every command in the guide is one that works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedaccord.cli import app

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "command-line.md"
BLOCK = re.compile(
    r"^(?P<skip><!-- not run: .+ -->\n)?```(?P<kind>sh|toml)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# what makes a run of the guide short, and changes nothing of what it shows
SHORT = {
    "run": ["--clients-per-round", "2", "--workers", "1"],
    "compare": ["--rounds", "1", "--clients-per-round", "2", "--workers", "1"],
}


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.replace("\\\n", " ").splitlines()]


@pytest.mark.slow
def test_the_commands_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    done = 0
    for block in BLOCK.finditer(GUIDE.read_text(encoding="utf-8")):
        if block["skip"]:
            continue
        if block["kind"] == "toml":
            name = block["text"].splitlines()[0].removeprefix("# ")
            Path(name).write_text(block["text"], encoding="utf-8")
            continue
        for program, *call in commands(block["text"]):
            assert program == "fedaccord"
            short = [] if "--resume" in call else SHORT.get(call[0], [])
            result = CliRunner().invoke(app, [*call, *short])
            assert result.exit_code == 0, (call, result.stderr, result.exception)
            done += 1
    assert done > 15
