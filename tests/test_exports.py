"""What a user can import: names that stay fixed, complete exports, nothing optional loaded."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import fedaccord
from fedaccord import errors, rules

ROOT = Path(__file__).parents[1]

# design.md, section 10: users' code is written against these.
FIXED_NAMES = [
    "Layout",
    "Spec",
    "Reply",
    "Cohort",
    "Rule",
    "StatelessRule",
    "Aggregation",
    "Request",
    "Claims",
    "History",
    "LocalSGD",
    "LocalTraining",
    "Federation",
    "TrainingState",
    "RoundResult",
    "Policy",
    "UniformSampler",
    "SizeProportionalSampler",
    "check",
    "start",
    "run_round",
    "drive",
    "simulate",
    "save",
    "load",
    "calibrate",
    "FedAvg",
    "FedPCD",
    "Uniform",
    "FedHV",
    "AFL",
    "CRAFT",
    "Ditto",
    "FedDyn",
    "FedFV",
    "FedHEAL",
    "FedLF",
    "FedMGDAPlus",
    "FedPW",
    "FedProx",
    "GIFAIR",
    "LocalOnly",
    "PropFair",
    "QFedAvg",
    "SCAFFOLD",
    "ServerAdagrad",
    "ServerAdam",
    "ServerMomentum",
    "ServerYogi",
    "TERM",
]

OPTIONAL_PACKAGES = (
    "matplotlib",
    "click",
    "rich",
    "tomli_w",
    "flwr",
    "pandas",
    "datasets",
    "torchjd",
)


def classes_defined_in(module: ModuleType, base: type) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


RULE_MODULES = [
    importlib.import_module(f"fedaccord.rules.{info.name}")
    for info in pkgutil.iter_modules(rules.__path__)
    if not info.name.startswith("_")
]
ALL_RULES = set().union(*(classes_defined_in(module, fedaccord.Rule) for module in RULE_MODULES))


@pytest.mark.parametrize("name", FIXED_NAMES)
def test_a_fixed_name_is_exported(name: str):
    assert name in fedaccord.__all__


@pytest.mark.parametrize("name", sorted(classes_defined_in(errors, Exception)))
def test_every_error_class_is_exported_and_belongs_to_the_tree(name: str):
    assert name in fedaccord.__all__
    assert issubclass(getattr(errors, name), errors.FedAccordError)


@pytest.mark.parametrize("name", fedaccord.__all__)
def test_an_exported_name_exists_and_has_a_docstring(name: str):
    value = getattr(fedaccord, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        assert inspect.getdoc(value)


def test_exports_are_all_the_public_names_that_are_no_modules():
    public = {
        name
        for name, value in vars(fedaccord).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert public == {name for name in fedaccord.__all__ if not name.startswith("_")}


def test_exports_name_nothing_twice():
    assert len(set(fedaccord.__all__)) == len(fedaccord.__all__)


@pytest.mark.parametrize("module", RULE_MODULES, ids=lambda module: module.__name__)
def test_a_public_rule_module_holds_a_rule(module: ModuleType):
    assert classes_defined_in(module, fedaccord.Rule)


def test_the_rules_package_exports_every_rule_found_in_its_modules():
    exported = {
        name
        for name in rules.__all__
        if inspect.isclass(getattr(rules, name))
        and issubclass(getattr(rules, name), fedaccord.Rule)
    }
    assert exported == ALL_RULES


@pytest.mark.parametrize("name", sorted(ALL_RULES))
def test_a_rule_is_exported_and_says_where_it_comes_from(name: str):
    assert name in fedaccord.__all__
    assert getattr(fedaccord, name).paper


@pytest.mark.parametrize("module", RULE_MODULES, ids=lambda module: module.__name__)
def test_a_rule_module_has_a_page(module: ModuleType):
    page = ROOT / "docs" / "rules" / f"{module.__name__.rsplit('.', 1)[-1]}.md"
    assert page.is_file()


def test_every_export_is_in_the_api_reference():
    pages = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs/api").glob("*.md")))
    documented = set(re.findall(r"automodule:: (\S+)", pages))
    homes = {
        name: value.__module__
        for name in fedaccord.__all__
        if inspect.isclass(value := getattr(fedaccord, name)) or inspect.isroutine(value)
    }
    missing = {
        name: home
        for name, home in homes.items()
        if not any(home == module or home.startswith(module + ".") for module in documented)
    }
    assert not missing


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert fedaccord.__version__ == project["version"]
    assert f"\nversion: {project['version']}\n" in citation


@pytest.mark.slow
def test_importing_the_package_loads_no_optional_one():
    # a fresh interpreter, since this one has loaded them already
    script = "import fedaccord, sys; print(sorted(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(ast.literal_eval(result.stdout))
    assert not loaded & set(OPTIONAL_PACKAGES)
