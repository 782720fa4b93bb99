"""Examples that users read also run: the README, the documentation's pages, the docstrings.

In a page every block fenced as ``python`` is run, in order and in one namespace. A block after
the comment ``<!-- no-test -->`` is left out; a page that contains ``<!-- slow-test -->`` is run
with the slow tests, and one that contains ``<!-- needs: package -->`` where that package is there.
"""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

NEEDS = re.compile(r"<!-- needs: (\w+) -->")
BLOCK = re.compile(
    r"^(?P<skip><!-- no-test -->\s*\n)?```python *\n(?P<code>.*?)^``` *$", re.DOTALL | re.MULTILINE
)


def pages() -> list[Path]:
    documents = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    return [ROOT / "README.md", *sorted(documents)]


def examples(path: Path) -> list[CodeType]:
    """The blocks of a page, compiled so that a traceback shows the page's own lines."""
    text = path.read_text(encoding="utf-8")
    blocks = []
    for match in BLOCK.finditer(text):
        if match["skip"]:
            continue
        lines_before = text.count("\n", 0, match.start("code"))
        blocks.append(compile("\n" * lines_before + match["code"], str(path), "exec"))
    return blocks


def parameters() -> list[object]:
    found = []
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        if not path.is_file():
            reason = f"{name} is not there"
            found.append(pytest.param(path, id=name, marks=pytest.mark.skip(reason=reason)))
        elif examples(path):
            slow = "<!-- slow-test -->" in path.read_text(encoding="utf-8")
            found.append(pytest.param(path, id=name, marks=[pytest.mark.slow] if slow else []))
    return found


@pytest.mark.parametrize("path", parameters())
def test_the_examples_of_a_page_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in NEEDS.findall(path.read_text(encoding="utf-8")):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in examples(path):
        exec(block, namespace)


def modules_with_examples() -> list[str]:
    """Modules whose source shows a prompt; the others need no import."""
    return [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((SOURCE / "fedaccord").rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_docstring_run(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert failed == 0
