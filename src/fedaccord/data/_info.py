"""What is known of a dataset before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from ..models import Kind


@dataclass(frozen=True)
class DatasetInfo:
    """A dataset in a few words and numbers.

    :param name: What ``load`` calls it.
    :param title: Its name in one line.
    :param description: What the samples and the tasks are.
    :param tasks: Name of each task, ``m`` of them.
    :param kinds: What each task predicts.
    :param num_train: Samples to train on in the published data.
    :param num_test: Samples to test on.
    :param num_clients: Number of natural clients; ``None`` if the data do not come by client.
    :param licence: SPDX expression of the data's licence, or words where there is none.
    :param citation: What to cite.
    :param shipped: Whether it is inside the package; else its files must be in a ``data_dir``.
    """

    name: str
    title: str
    description: str
    tasks: tuple[str, ...]
    kinds: tuple[Kind, ...]
    num_train: int
    num_test: int
    num_clients: int | None
    licence: str
    citation: tuple[str, ...]
    shipped: bool = False
