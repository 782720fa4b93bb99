"""Packages that not everybody needs."""

from __future__ import annotations

from ..errors import FedAccordError


def missing(package: str, purpose: str, extra: str) -> FedAccordError:
    """The error for a package that is not installed.

    :param package: Its name.
    :param purpose: What needs it, as the beginning of a sentence.
    :param extra: The extra of this library that brings it.
    """
    return FedAccordError(
        f"{purpose} needs `{package}`, which is not installed. "
        f"Install it with `pip install 'fedaccord[{extra}]'`."
    )
