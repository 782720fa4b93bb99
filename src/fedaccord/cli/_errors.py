"""From what the library raises to one line for the user."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import click

from ..errors import CheckpointError, FedAccordError


class UserError(click.ClickException):
    """Something in the call is wrong: exit code 2."""

    exit_code = 2


class RunError(click.ClickException):
    """The call was right and the run failed, or its files are damaged: exit code 1."""

    exit_code = 1


class InterruptedRun(click.ClickException):
    """The user stopped the run: exit code 130."""

    exit_code = 130


def one_line(message: str) -> str:
    """A message without line feeds, and without the middle of long numbers and lists of them."""
    line = " ".join(message.split())
    line = re.sub(r"\d{40,}", lambda digits: f"{digits[0][:10]}...", line)
    return re.sub(r"(?:\d+, ){20,}\d+", _shortened, line)


def _shortened(numbers: re.Match[str]) -> str:
    each = numbers[0].split(", ")
    return f"{', '.join(each[:10])}, ... ({len(each)} in all)"


@contextlib.contextmanager
def preparing() -> Iterator[None]:
    """Whatever is wrong before the first round is the call's fault, damaged files apart."""
    try:
        yield
    except CheckpointError as error:
        raise RunError(str(error)) from error
    except (ValueError, FedAccordError) as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(_of_the_system(error)) from error


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Whatever is wrong from the first round on is the run's, a folder in use apart."""
    from ..experiments import FolderError

    try:
        yield
    except FolderError as error:  # somebody else was there first, and nothing was trained
        raise UserError(str(error)) from error
    except (ValueError, FedAccordError) as error:
        raise RunError(str(error)) from error
    except OSError as error:
        raise RunError(_of_the_system(error)) from error


def _of_the_system(error: OSError) -> str:
    where = f"`{error.filename}`: " if error.filename else ""
    return f"{where}{error.strerror or error}."
