"""Who carries out the jobs of a round: one after the other, or threads side by side."""

from __future__ import annotations

import contextlib
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import torch
from torch import nn

from .clients import ClientAlgorithm, ClientResult, Job
from .clients.randomness import forbid_global_draws
from .federation import build

ModelFactory: TypeAlias = Callable[[], nn.Module]


@dataclass(frozen=True)
class ClientFailure:
    """A job that raised.

    :param client_id: The client.
    :param error: What its code raised.
    """

    client_id: int
    error: Exception


class Executor(Protocol):
    """Carries out jobs. Results do not depend on which executor does."""

    def __call__(
        self, algorithm: ClientAlgorithm, jobs: Sequence[Job], model: ModelFactory, /
    ) -> list[ClientResult | ClientFailure]:
        """The results, in the order of the jobs.

        :param algorithm: What to do with each job.
        :param jobs: The work.
        :param model: Makes scratch models.
        """
        ...


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """PyTorch's settings as the library needs them, whatever the caller's are.

    One thread inside each tensor operation, since their number can change the last bit of a sum;
    gradients, and the model's own precision, even if the caller is in a block without.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(mode=False))
            stack.enter_context(torch.enable_grad())
            for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
                stack.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        torch.set_num_threads(before)


def attempt(algorithm: ClientAlgorithm, job: Job, model: nn.Module) -> ClientResult | ClientFailure:
    """Carry out one job; whatever the client's code raises becomes its failure."""
    # a client's code may write into what it receives, also by making views of it
    received = {name: value.clone() for name, value in job.payload.items()}
    try:
        return algorithm(replace(job, params=job.params.clone(), payload=received), model)
    except Exception as error:  # noqa: BLE001 - a client's code may raise anything
        return ClientFailure(job.client_id, error)


def serial(
    algorithm: ClientAlgorithm, jobs: Sequence[Job], model: ModelFactory, /
) -> list[ClientResult | ClientFailure]:
    """Carry out the jobs one after the other."""
    if not jobs:
        return []
    scratch = build(model, 0).to(jobs[0].params.device)
    with own_settings(), forbid_global_draws():
        return [attempt(algorithm, job, scratch) for job in jobs]


@dataclass(frozen=True)
class Threads:
    """Carries out jobs in threads, the largest client first.

    PyTorch's kernels run outside Python's lock, so threads train as fast as processes do, with one
    copy of the data.

    :param workers: Number of threads, at least 1; one for each core by default.
    :raises ValueError: If ``workers`` is below 1.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and not (isinstance(self.workers, int) and self.workers >= 1):
            raise ValueError(f"`workers` must be an integer of at least 1. Got {self.workers!r}.")

    def __call__(
        self, algorithm: ClientAlgorithm, jobs: Sequence[Job], model: ModelFactory, /
    ) -> list[ClientResult | ClientFailure]:
        """The results, in the order of the jobs."""
        workers = min(self.workers or os.cpu_count() or 1, len(jobs))
        if workers < 2:
            return serial(algorithm, jobs, model)
        scratch: queue.SimpleQueue[nn.Module] = queue.SimpleQueue()
        for _ in range(workers):
            scratch.put(build(model, 0).to(jobs[0].params.device))

        def work(job: Job) -> ClientResult | ClientFailure:
            mine = scratch.get()
            try:
                return attempt(algorithm, job, mine)
            finally:
                scratch.put(mine)

        largest_first = sorted(jobs, key=lambda job: len(job.data), reverse=True)
        with (
            own_settings(),
            forbid_global_draws(),
            ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool,
        ):
            futures = {id(job): pool.submit(work, job) for job in largest_first}
            try:
                return [futures[id(job)].result() for job in jobs]
            except BaseException:  # an interrupt waits for the jobs under way, not for the rest
                pool.shutdown(wait=False, cancel_futures=True)
                raise
