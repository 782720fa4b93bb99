"""Rules that change the clients or wrap others, once more: plain NumPy, without the package.

Every function runs a whole training on clients with losses ``a / 2 |w - c|^2`` and gives the shared
model after each round. Written from the formulas, for the golden trajectories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Vector = Any  # np.ndarray of float64
Gradient = Callable[[Any], Any]
LR, STEPS = 0.1, 3


@dataclass(frozen=True)
class Client:
    a: float
    c: Vector
    n: int

    def loss(self, w: Vector) -> float:
        return self.a / 2 * float(((w - self.c) ** 2).sum())

    def gradient(self, w: Vector) -> Vector:
        return self.a * (w - self.c)


CLIENTS = [
    Client(0.5, np.array([1.0, 0.0, -0.5]), 1),
    Client(2.0, np.array([-1.0, 2.0, 0.3]), 2),
    Client(1.0, np.array([0.5, -1.5, 1.0]), 3),
    Client(1.5, np.array([2.0, 1.0, -2.0]), 4),
]
# the last client comes once and stays away
ASKED = [[0, 1, 2, 3], [0, 1], [1, 2], [0], [0, 1, 2]]


def descend(gradient: Gradient, start: Vector) -> Vector:
    w = start
    for _ in range(STEPS):
        w = w - LR * gradient(w)
    return w


def shares(ids: Sequence[int]) -> Vector:
    counts = np.array([CLIENTS[i].n for i in ids], dtype=float)
    return counts / counts.sum()


def weighted(weigh: Callable[[Vector, Vector], Vector]) -> list[Vector]:
    """FedAvg's clients, with weights made of shares and losses."""
    w, seen = np.zeros(3), []
    for ids in ASKED:
        ends = np.array([descend(CLIENTS[i].gradient, w) for i in ids])
        losses = np.array([CLIENTS[i].loss(w) for i in ids])
        w = w + weigh(shares(ids), losses) @ (ends - w)
        seen.append(w)
    return seen


def term(t: float) -> list[Vector]:
    def weigh(p: Vector, losses: Vector) -> Vector:
        tilts = p * np.exp(t * losses)
        return tilts / tilts.sum()

    return weighted(weigh)


def term_legacy(t: float) -> list[Vector]:
    estimate = 0.0

    def weigh(p: Vector, losses: Vector) -> Vector:
        nonlocal estimate
        tilts = np.exp(t * (losses - losses.max()))
        estimate = 0.5 * estimate + 0.5 * tilts.mean()
        return tilts / (estimate * len(p)) / len(p)

    return weighted(weigh)


def gifair(c: float) -> list[Vector]:
    def weigh(p: Vector, losses: Vector) -> Vector:
        m = len(p)
        if m == 1:
            return p
        ranks = np.empty(m)
        ranks[np.argsort(losses)] = np.arange(-(m - 1), m, 2)
        return p + c * p.min() / (m - 1) * ranks

    return weighted(weigh)


def averaged(gradient_of: Callable[[Client, Vector], Gradient]) -> list[Vector]:
    """FedAvg's server, with another gradient at the clients, which may know the received model."""
    w, seen = np.zeros(3), []
    for ids in ASKED:
        ends = np.array([descend(gradient_of(CLIENTS[i], w), w) for i in ids])
        w = shares(ids) @ ends
        seen.append(w)
    return seen


def fedprox(mu: float) -> list[Vector]:
    return averaged(lambda client, received: lambda w: client.gradient(w) + mu * (w - received))


def propfair(base: float, epsilon: float, *, huber: bool) -> list[Vector]:
    def slope(loss: float) -> float:
        if base - loss >= epsilon:
            return 1 / (base - loss)
        return 1 / epsilon if huber else 1 / base

    return averaged(lambda client, _: lambda w: slope(client.loss(w)) * client.gradient(w))


def scaffold(server_lr: float) -> list[Vector]:
    n = len(CLIENTS)
    w, c, own, seen = np.zeros(3), np.zeros(3), np.zeros((n, 3)), []
    for ids in ASKED:
        moves, changes = [], []
        for i in ids:
            y = w
            for _ in range(STEPS):
                y = y - LR * (CLIENTS[i].gradient(y) - own[i] + c)
            renewed = own[i] - c + (w - y) / (STEPS * LR)
            moves.append(y - w)
            changes.append(renewed - own[i])
            own[i] = renewed
        w = w + server_lr * np.mean(moves, axis=0)
        c = c + np.sum(changes, axis=0) / n
        seen.append(w)
    return seen


def feddyn(alpha: float) -> list[Vector]:
    n = len(CLIENTS)
    w, h, duals, seen = np.zeros(3), np.zeros(3), np.zeros((n, 3)), []
    for ids in ASKED:
        ends = []
        for i in ids:
            y = w
            for _ in range(STEPS):
                y = y - LR * (CLIENTS[i].gradient(y) - duals[i] + alpha * (y - w))
            duals[i] = duals[i] - alpha * (y - w)
            ends.append(y)
        h = h - alpha / n * np.sum([y - w for y in ends], axis=0)
        w = np.mean(ends, axis=0) - h / alpha
        seen.append(w)
    return seen


def ditto(lam: float) -> tuple[list[Vector], dict[int, Vector]]:
    """The shared models, and every client's own at the end."""
    w, own, seen = np.zeros(3), {}, []
    for ids in ASKED:
        ends = []
        for i in ids:
            v, received = own.get(i, w), w
            for _ in range(STEPS):
                v = v - LR * (CLIENTS[i].gradient(v) + lam * (v - received))
            own[i] = v
            ends.append(descend(CLIENTS[i].gradient, w))
        w = shares(ids) @ np.array(ends)
        seen.append(w)
    return seen, own


def localonly() -> tuple[list[Vector], dict[int, Vector]]:
    """The shared models, which never move, and every client's own at the end."""
    own: dict[int, Vector] = {}
    for ids in ASKED:
        for i in ids:
            own[i] = descend(CLIENTS[i].gradient, own.get(i, np.zeros(3)))
    return [np.zeros(3) for _ in ASKED], own


def optimised(step_of: Callable[[Vector], Vector]) -> list[Vector]:
    """FedAvg's clients, with a step made of the mean move."""
    w, seen = np.zeros(3), []
    for ids in ASKED:
        ends = np.array([descend(CLIENTS[i].gradient, w) for i in ids])
        w = w + step_of(shares(ids) @ (ends - w))
        seen.append(w)
    return seen


def fedopt(
    kind: str, *, lr: float, beta1: float, beta2: float, tau: float, v0: float
) -> list[Vector]:
    m, v = np.zeros(3), np.full(3, v0)

    def step_of(delta: Vector) -> Vector:
        nonlocal m, v
        m = beta1 * m + (1 - beta1) * delta
        if kind == "adagrad":
            v = v + delta**2
        elif kind == "adam":
            v = beta2 * v + (1 - beta2) * delta**2
        else:
            v = v - (1 - beta2) * delta**2 * np.sign(v - delta**2)
        return lr * m / (np.sqrt(v) + tau)

    return optimised(step_of)


def momentum(*, lr: float, beta: float) -> list[Vector]:
    velocity = np.zeros(3)

    def step_of(delta: Vector) -> Vector:
        nonlocal velocity
        velocity = beta * velocity + delta
        return lr * velocity

    return optimised(step_of)
