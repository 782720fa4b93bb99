"""Datasets of the Hugging Face hub."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from ._hugging_face import from_hugging_face
from ._optional import missing
from ._own import OwnData


def load_hugging_face(
    name: str,
    configuration: str | None = None,
    *,
    inputs: str | Sequence[str],
    target: str | Sequence[str],
    client: str | None = None,
    revision: str | None = None,
    cache_dir: Path | str | None = None,
    read: Callable[..., OwnData] = from_hugging_face,
) -> OwnData:
    """Load a dataset of the Hugging Face hub, which needs a network, and make clients of it.

    A dataset that brings code of its own is refused. For other options pass ``read``, such as
    ``functools.partial(from_hugging_face, mode="RGB")``.

    :param name: What the hub calls it, for example ``"ylecun/mnist"``, or a local folder.
    :param configuration: Which of its configurations.
    :param inputs: As in ``from_hugging_face``, like ``target`` and ``client``.
    :param target: The column to predict.
    :param client: The column that says whose each row is.
    :param revision: Commit or tag; give one for a run that others are to repeat.
    :param cache_dir: Where downloads are kept; by default where ``datasets`` keeps them.
    :param read: What makes clients of it.
    :raises FedAccordError: If ``datasets`` is not installed.
    """
    try:
        from datasets import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            load_dataset,
        )
    except ModuleNotFoundError as error:
        raise missing("datasets", "Loading from the hub", "hub") from error
    # newer versions never run a dataset's code and have no such option
    has_option = "trust_remote_code" in inspect.signature(load_dataset).parameters
    options = {"trust_remote_code": False} if has_option else {}
    dataset = load_dataset(
        name, configuration, revision=revision, cache_dir=cache_dir and str(cache_dir), **options
    )
    return read(dataset, inputs=inputs, target=target, client=client)
