"""The architecture's arrows: who may import whom, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fedaccord"

# The table of design.md, section 1. A module imports from the rows above its own, and in its own
# row from what stands to its left. A new module needs a place here.
LAYERS = (
    ("errors", "random", "files"),
    ("layout",),
    ("reply", "cohort"),
    ("linalg", "history", "buffers", "clients"),
    ("rule",),
    ("rules",),
    (
        "federation",
        "samplers",
        "training",
        "screening",
        "executors",
        "round",
        "simulation",
        "calibration",
    ),
    ("checkpoint",),
    ("_public",),
    ("torchjd",),
    ("models", "metrics", "data"),
    ("plots", "experiments"),
    ("cli",),
    ("__main__",),
)
ORDER = [unit for layer in LAYERS for unit in layer]

# Everything else that is imported must be in the standard library.
CORE_PACKAGES = {"torch", "numpy", "scipy", "daqp", "safetensors"}
OTHER_PACKAGES = {
    "plots": {"adjustText", "matplotlib"},
    "experiments": {"tomli_w", "filelock"},
    "cli": {"click", "rich"},
    "data": {"platformdirs", "pandas", "pyarrow", "PIL", "datasets", "flwr_datasets"},
    "torchjd": {"torchjd"},
}

MODULES = sorted(SOURCE.rglob("*.py"))
INSIDE = [path for path in MODULES if path != SOURCE / "__init__.py"]


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def unit_of(path: Path) -> str:
    """The module or subpackage directly below ``fedaccord`` that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[str, ...]]:
    """Every imported module as an absolute dotted path, wherever in the file it is imported."""
    package = ("fedaccord", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            if module == ("fedaccord",):  # `from .. import linalg` names the module itself
                for alias in node.names:
                    yield (*module, alias.name)
            else:
                yield module


def rule_names() -> set[str]:
    """The public classes of the rule modules."""
    return {
        node.name
        for path in sorted((SOURCE / "rules").glob("[!_]*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_every_module_has_a_place_in_the_table(path: Path):
    assert unit_of(path) in ORDER, f"Add `{unit_of(path)}` to LAYERS, where its imports allow it."


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_imports_point_one_way(path: Path):
    unit = unit_of(path)
    allowed = {unit, *ORDER[: ORDER.index(unit)]} if unit in ORDER else set()
    used = {name[1] for name in imports_of(path) if name[0] == "fedaccord" and len(name) > 1}
    assert used <= allowed, f"`{unit}` stands above {sorted(used - allowed)} in LAYERS."


@pytest.mark.parametrize("path", INSIDE, ids=name_of)
def test_the_package_is_not_imported_as_a_whole_from_inside(path: Path):
    assert ("fedaccord",) not in set(imports_of(path))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_declared_packages_are_imported_and_only_where_they_belong(path: Path):
    allowed = CORE_PACKAGES | OTHER_PACKAGES.get(unit_of(path), set()) | {"fedaccord"}
    foreign = {name[0] for name in imports_of(path)} - set(sys.stdlib_module_names)
    assert foreign <= allowed


@pytest.mark.parametrize(
    "path",
    [path for path in INSIDE if unit_of(path) in ORDER[: ORDER.index("rules")]],
    ids=name_of,
)
def test_nothing_below_the_rules_names_a_rule(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.alias)}
    assert not names & rule_names()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_reads_the_environment_or_seeds_a_global_generator(path: Path):
    text = ast.unparse(ast.parse(path.read_text(encoding="utf-8")))
    forbidden = ("os.environ", "os.getenv", "torch.manual_seed(", "np.random.seed(")
    assert not [word for word in forbidden if word in text]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_annotations_are_not_evaluated_at_import(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    future = [
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for alias in node.names
    ]
    only_reexports = all(
        isinstance(node, ast.Expr | ast.ImportFrom | ast.Assign) for node in tree.body
    )
    assert "annotations" in future or only_reexports
