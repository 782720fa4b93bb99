"""From what the library raises to one line for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from ..errors import FedAccordError


class UserError(click.ClickException):
    """Something in the call is wrong: exit code 2."""

    exit_code = 2


class RunError(click.ClickException):
    """The call was right and the run failed: exit code 1."""

    exit_code = 1


def one_line(message: str) -> str:
    """A message without line feeds."""
    return " ".join(message.split())


@contextlib.contextmanager
def preparing() -> Iterator[None]:
    """Whatever is wrong before the first round is the call's fault."""
    try:
        yield
    except (ValueError, FedAccordError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(_of_the_system(error)) from error


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Whatever is wrong from the first round on is the run's."""
    try:
        yield
    except (ValueError, FedAccordError) as error:
        raise RunError(str(error)) from error
    except OSError as error:
        raise RunError(_of_the_system(error)) from error


def _of_the_system(error: OSError) -> str:
    where = f"`{error.filename}`: " if error.filename else ""
    return f"{where}{error.strerror or error}."
