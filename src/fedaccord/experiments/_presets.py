"""Settings that come with the package, and files that start from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ..data import list_datasets
from ..errors import FedAccordError, UnknownNameError
from ._table import Table, override
from ._toml import FORMAT, parse_toml, require_format
from ._values import convert


@dataclass(frozen=True)
class Preset:
    """Settings under a name.

    :param name: What it is called.
    :param title: What it is, in one line.
    :param description: Where its values come from.
    :param minutes: How long a run takes on two cores.
    :param measured: How that was measured.
    :param needs_data: Whether it needs data that do not come with the package.
    :param rules: The rules that ``compare`` trains with if none are given, as typed there.
    :param settings: The values, as :func:`~fedaccord.experiments.from_table` takes them.
    """

    name: str
    title: str
    description: str
    minutes: float
    measured: str
    needs_data: bool
    settings: Mapping[str, Any]
    rules: tuple[str, ...] = ()


def list_presets() -> tuple[str, ...]:
    """The names of all presets, in alphabetical order."""
    names = (file.name for file in (resources.files("fedaccord") / "presets").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_preset(name: str) -> Preset:
    """Read a preset with what is said about it.

    :raises UnknownNameError: If there is none of this name; the message names the nearest.
    :raises FedAccordError: If its file is damaged.
    """
    if name not in list_presets():
        raise UnknownNameError.among("preset", name, list_presets())
    file = resources.files("fedaccord") / "presets" / f"{name}.toml"
    try:
        settings = parse_toml(file.read_bytes())
        about = settings.pop("preset")
        hints: dict[str, Any] = {
            "title": str,
            "description": str,
            "minutes": float,
            "measured": str,
            "needs_data": bool,
        }
        told = {key: convert(about[key], hint, name=key) for key, hint in hints.items()}
        told["rules"] = convert(about.get("rules", ()), tuple[str, ...], name="rules")
    except (ValueError, KeyError, TypeError) as error:
        raise FedAccordError(
            f"The preset `{name}` inside the package is damaged: {error}. Install it again."
        ) from error
    return Preset(name, settings=settings, **told)


def preset(name: str) -> Table:
    """The settings of a preset, usually everything but the rule.

    :raises UnknownNameError: If there is none of this name; the message names the nearest.
    """
    return dict(read_preset(name).settings)


def usual_settings(dataset: str) -> Table:
    """The settings that go with a dataset: the preset of its name.

    :raises UnknownNameError: If there is no such dataset.
    :raises ValueError: If nothing is usual for it.
    """
    if dataset not in list_datasets():
        raise UnknownNameError.among("dataset", dataset, list_datasets())
    if dataset not in list_presets():
        raise ValueError(
            f"There are no usual settings for dataset `{dataset}`. Start from a preset, one of "
            f"{', '.join(list_presets())}, or give every setting in a file."
        )
    return preset(dataset)


def read_file(path: Path) -> Table:
    """Read a file that describes an experiment, or a part of one.

    :param path: A TOML file as :func:`~fedaccord.experiments.from_table` takes it. It may have a
        ``format``, and it may say what it starts from; see :func:`completed`.
    :raises ValueError: If it is no TOML.
    :raises FedAccordError: If a later release made it.
    :raises OSError: If it cannot be read.
    """
    try:
        table = parse_toml(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"`{path}` is no TOML file: {error}.") from error
    require_format(table.pop("format", FORMAT), path)
    return table


def completed(table: Mapping[str, Any]) -> Table:
    """Fill in what a file leaves out.

    :param table: What the file says. With ``preset`` the rest is that preset's; else, if there is
        one named like its ``dataset``, that one's.
    :raises ValueError: If it says neither.
    """
    given = dict(table)
    name = given.pop("preset", None)
    if name is not None:
        return override(preset(convert(name, str, name="preset")), given)
    if "dataset" not in given:
        found = ", ".join(f"`{key}`" for key in given) or "nothing"
        raise ValueError(
            f"An experiment needs `dataset`, or `preset` to start from. It has {found}."
        )
    dataset = convert(given["dataset"], str, name="dataset")
    if dataset not in list_datasets():
        raise UnknownNameError.among("dataset", dataset, list_datasets())
    return override(preset(dataset) if dataset in list_presets() else {}, given)
