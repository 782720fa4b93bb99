"""``fedaccord completion``: names completed by the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem, get_completion_class

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print a script that completes names in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that lets SHELL complete commands, options and names.

    For bash, add this line to ~/.bashrc: eval "$(fedaccord completion bash)"
    """
    app = click.get_current_context().find_root().command
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(app, {}, "fedaccord", "_FEDACCORD_COMPLETE").source())


def names(known: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """Complete one of several names.

    :param known: Gives the names; called only when the shell asks.
    :param files: Whether a file may stand there instead.
    """

    def complete(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
        found = [name for name in known() if name.casefold().startswith(typed.casefold())]
        if files and not found:
            return [CompletionItem(typed, type="file")]
        return [CompletionItem(name) for name in found]

    return complete


def rules() -> Iterable[str]:
    """The rules, as a command line spells them."""
    from ..experiments import rule_classes

    return [name.casefold() for name in rule_classes()]


def datasets() -> Iterable[str]:
    """The datasets."""
    from ..data import list_datasets

    return list_datasets()


def partitions() -> Iterable[str]:
    """The partitions."""
    from ..experiments import partition_functions

    return partition_functions()


def models() -> Iterable[str]:
    """The models."""
    from ..experiments import model_factories

    return model_factories()


def presets() -> Iterable[str]:
    """The presets."""
    from ..experiments import list_presets

    return list_presets()
