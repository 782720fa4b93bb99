"""Random numbers that depend on a seed and a path, and on nothing else.

Every draw of a run comes from ``generator(seed, "what", round, client_id)``. There is no generator
state to save and no order of execution to respect, so resumed, threaded and repeated runs draw the
same numbers. The global generators of Python, NumPy and PyTorch are neither read nor seeded.
"""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, *path: str | int) -> int:
    """Derive the seed of one random stream.

    :param seed: The run's seed, any integer.
    :param path: What the stream is for, for example ``("client", 3, "batches")``. Different paths
        give independent streams; ``1`` and ``"1"`` are different.
    :return: An integer in ``[0, 2**63)``, the same on every machine.
    :raises TypeError: If a part of the path is neither a string nor an integer.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in (seed, *path):
        if isinstance(part, bool) or not isinstance(part, str | int):
            raise TypeError(f"A seed path holds strings and integers. Got {part!r}.")
        text = f"{'s' if isinstance(part, str) else 'i'}{part}".encode()
        # the length keeps ("ab", "c") and ("a", "bc") apart
        digest.update(len(text).to_bytes(8, "big") + text)
    return int.from_bytes(digest.digest(), "big") >> 1


def generator(seed: int, *path: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Open the random stream of ``derive(seed, *path)``.

    :param seed: The run's seed, any integer.
    :param path: What the stream is for.
    :param device: Where the numbers are drawn. Streams of different devices differ.
    """
    return torch.Generator(device=device).manual_seed(derive(seed, *path))
