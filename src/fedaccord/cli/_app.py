"""The program: its commands, and one line for every mistake."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Any, NoReturn

import click

from ._compare import compare
from ._demo import demo
from ._errors import one_line
from ._list import list_
from ._run import run

INTERRUPTED = 130


class App(click.Group):
    """A group of commands whose errors take one line.

    Exit codes: 0 done; 1 the run failed; 2 something in the call is wrong; 130 interrupted.
    """

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the program, and leave the process with its exit code."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except click.Abort:
            code = INTERRUPTED
        except click.ClickException as error:
            click.echo(f"Error: {one_line(error.format_message())}", err=True)
            code = error.exit_code
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=App, invoke_without_command=True)
@click.version_option(metadata.version("fedaccord"), prog_name="fedaccord")
@click.pass_context
def app(context: click.Context) -> None:
    """Federated learning whose model every client and every task can accept."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (run, compare, list_, demo):
    app.add_command(command)


def main() -> NoReturn:
    """Run the program."""
    app.main(prog_name="fedaccord")
