"""The program: its commands, and one line for every mistake."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from typing import Any, NoReturn

import click

from ._compare import compare
from ._completion import completion
from ._demo import demo
from ._errors import InterruptedRun, one_line
from ._list import list_
from ._run import run
from ._verify import verify


class App(click.Group):
    """A group of commands whose errors take one line.

    Exit codes: 0 done; 1 the run failed, or its files are damaged; 2 something in the call is
    wrong; 130 interrupted.
    """

    def main(self, args: Any = None, *rest: Any, **kwargs: Any) -> NoReturn:
        """Run the program, and leave the process with its exit code."""
        kwargs["standalone_mode"] = False
        typed = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(typed, *rest, **kwargs)
        except click.Abort:
            code = _report(InterruptedRun("Interrupted."), as_json="--json" in typed)
        except click.ClickException as error:
            code = _report(error, as_json="--json" in typed)
        sys.exit(code if isinstance(code, int) else 0)


def _report(error: click.ClickException, *, as_json: bool) -> int:
    message = one_line(error.format_message())
    if as_json:
        told = {"error": message, "exit_code": error.exit_code}
        click.echo(json.dumps(told, ensure_ascii=False), err=True)
    else:
        prefix = "" if isinstance(error, InterruptedRun) else "Error: "
        click.echo(f"{prefix}{message}", err=True)
    return error.exit_code


@click.group(cls=App, invoke_without_command=True)
@click.version_option(metadata.version("fedaccord"), prog_name="fedaccord")
@click.pass_context
def app(context: click.Context) -> None:
    """Federated learning whose model every client and every task can accept."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (run, compare, list_, verify, demo, completion):
    app.add_command(command)


def main() -> NoReturn:
    """Run the program."""
    app.main(prog_name="fedaccord")
