"""The server-side fairness rules once more, in plain NumPy and in the papers' own sign.

Written from the specification's text, not from the package: deltas are subtracted, projections work
on vectors instead of coefficients, minimum-norm weights come from trying every active set. Slow,
and right only for small numbers of clients.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass
class Round:
    """What the server receives. Rows belong to `ids`."""

    t: int
    ids: list[int]
    deltas: Array
    counts: Array
    losses: Array
    train_losses: Array
    client_lr: float
    blocks: list[slice]
    num_clients: int


def simplex(y: Array) -> Array:
    """Section 0.3."""
    u = np.sort(y)[::-1]
    rho = max(k for k in range(1, len(y) + 1) if u[k - 1] + (1 - u[:k].sum()) / k > 0)
    return np.maximum(y - (u[:rho].sum() - 1) / rho, 0)


def min_norm(rows: Array, lower: Array | None = None, upper: Array | None = None) -> Array:
    """Section 0.4, by solving the equality problem of every possible active set."""
    n = len(rows)
    gram = rows @ rows.T
    lower = np.zeros(n) if lower is None else np.maximum(lower, 0)
    kinds = "lf" if upper is None else "lfu"
    upper = np.ones(n) if upper is None else np.minimum(upper, 1)
    best, best_value = None, np.inf
    for places in itertools.product(kinds, repeat=n):
        free = np.array([p == "f" for p in places])
        w = np.where(free, 0.0, np.where([p == "u" for p in places], upper, lower))
        k = int(free.sum())
        if k:
            system = np.zeros((k + 1, k + 1))
            system[:k, :k] = gram[np.ix_(free, free)]
            system[:k, k] = system[k, :k] = 1
            right = np.append(-gram[free][:, ~free] @ w[~free], 1 - w.sum())
            w[free] = np.linalg.lstsq(system, right, rcond=None)[0][:k]
        if abs(w.sum() - 1) > 1e-9 or (w < lower - 1e-9).any() or (w > upper + 1e-9).any():
            continue
        if (value := float(w @ gram @ w)) < best_value - 1e-13:
            best, best_value = w, value
    return best


def afl(lr_lambda: float) -> Callable[[Round, Any], Any]:
    def rule(r: Round, lam: Any) -> Any:
        lam = np.full(r.num_clients, 1 / r.num_clients) if lam is None else lam
        step = lam[r.ids] / lam[r.ids].sum() @ r.deltas
        lam = lam.copy()
        lam[r.ids] += lr_lambda * r.losses
        return step, simplex(lam)

    return rule


def qfedavg(q: float) -> Callable[[Round, Any], Any]:
    def rule(r: Round, state: Any) -> Any:
        losses, lipschitz = r.losses + 1e-10, 1 / r.client_lr
        top, bottom = 0, 0
        for loss, delta in zip(losses, r.deltas, strict=True):
            g = delta * lipschitz
            top = top + loss**q * g
            bottom = bottom + q * loss ** (q - 1) * (g @ g) + lipschitz * loss**q
        return top / bottom, state

    return rule


def fedmgdaplus(epsilon: float) -> Callable[[Round, Any], Any]:
    def rule(r: Round, state: Any) -> Any:
        units = r.deltas / np.linalg.norm(r.deltas, axis=1, keepdims=True)
        prior = np.full(len(units), 1 / len(units))
        return min_norm(units, prior - epsilon, prior + epsilon) @ units, state

    return rule


def fedfv(alpha: float, tau: int) -> Callable[[Round, Any], Any]:
    def rule(r: Round, state: Any) -> Any:
        t = r.t + 1
        hist, last = state or ({}, {})
        for i, c in enumerate(r.ids):
            hist, last = {**hist, c: r.deltas[i]}, {**last, c: t}
        m = len(r.ids)
        order = sorted(range(m), key=lambda i: r.losses[i])
        keep = order[math.ceil((m - 1) * (1 - alpha)) :]
        projected = []
        for i in range(m):
            pi = r.deltas[i].copy()
            for j in order if i not in keep else []:
                if j != i and (c := r.deltas[j] @ pi) < 0:
                    pi = pi - c * r.deltas[j] / (r.deltas[j] @ r.deltas[j])
            projected.append(pi)
        x = np.mean(projected, axis=0)
        for k in range(tau, 0, -1) if t >= tau else []:
            y = sum((hist[c] for c in hist if last[c] == t - k and x @ hist[c] < 0), 0 * x)
            if x @ y < 0:
                x = x - (x @ y) * y / (y @ y)
        mean = np.linalg.norm(r.deltas.mean(axis=0))
        return x / np.linalg.norm(x) * mean, (hist, last)

    return rule


def fedlf() -> Callable[[Round, Any], Any]:
    def rule(r: Round, state: Any) -> Any:
        stored, when = state or ({}, {})
        m = len(r.ids)
        f = r.losses
        u = np.full(m, 1 / math.sqrt(m))
        size = np.linalg.norm(f)
        h = ((f @ u) * f / size - u * size) / size**2
        seen = len(set(stored) | set(r.ids))
        window = seen // m if seen > m else -1
        old = [stored[c] for c in sorted(stored) if c not in r.ids and r.t - when[c] <= window]

        def block(columns: slice) -> Array:
            rows = r.deltas[:, columns]
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            mu = lengths.mean()  # of all rows, also of those that are zero and then dropped
            moving = lengths[:, 0] > 0
            if not moving.any():
                return np.zeros(rows.shape[1])
            rows, part = rows[moving] / lengths[moving] * mu, h[moving]
            extra = [part @ rows, *[v[columns] for v in old]]
            extra = [v / np.linalg.norm(v) * mu for v in extra if np.linalg.norm(v) > 0]
            rows = np.array([*rows, *extra])
            d = min_norm(rows) @ rows
            return d if np.linalg.norm(d) > 1e-7 * mu else 0 * d

        layers = list(r.blocks)
        directions = [block(layer) for layer in layers]
        while len(layers) > 1 and any(not d.any() for d in directions):
            i = next(i for i, d in enumerate(directions) if not d.any())
            i = min(i, len(layers) - 2)
            layers[i : i + 2] = [slice(layers[i].start, layers[i + 1].stop)]
            directions[i : i + 2] = [block(layers[i])]
        d = np.concatenate(directions)
        mean = np.linalg.norm(r.deltas.mean(axis=0))
        step = d / np.linalg.norm(d) * mean if d.any() else d
        stored = {**stored, **{c: r.deltas[i] for i, c in enumerate(r.ids)}}
        return step, (stored, {**when, **dict.fromkeys(r.ids, r.t)})

    return rule


def fedheal(threshold: float, beta: float) -> Callable[[Round, Any], Any]:
    def rule(r: Round, state: Any) -> Any:
        state = dict(state or {})
        masked, masks, dist = [], [], []
        for i, c in enumerate(r.ids):
            up = (r.deltas[i] >= 0).astype(float)
            if c not in state:
                state[c] = {"t": 0, "c": up, "delta": 0.0, "W": 1 / len(r.ids)}
                mask = np.ones_like(up)
            else:
                habit = state[c]["c"]
                mask = (np.where(up > 0, habit, 1 - habit) > threshold).astype(float)
            mine = state[c] = dict(state[c])
            mine["c"] = (mine["c"] * mine["t"] + up) / (mine["t"] + 1)
            mine["t"] += 1
            masks.append(mask)
            masked.append(mask * r.deltas[i])
            dist.append(sum(np.linalg.norm(masked[-1][b]) for b in r.blocks))
        for i, c in enumerate(r.ids):
            state[c]["delta"] = (1 - beta) * state[c]["delta"] + beta * dist[i] / sum(dist)
            state[c]["W"] += state[c]["delta"]
        w = np.array([state[c]["W"] for c in r.ids])
        w = w / w.sum()
        step = np.zeros(r.deltas.shape[1])
        for e in range(len(step)):
            total = sum(w[i] * masks[i][e] for i in range(len(w)))
            if total > 0:
                step[e] = sum(w[i] * masks[i][e] / total * masked[i][e] for i in range(len(w)))
        return step, state

    return rule


def fedpw(beta: float, drop: float, *, bounded: bool = True) -> Callable[[Round, Any], Any]:
    def rule(r: Round, state: Any) -> Any:
        n_all, m, ids = r.num_clients, len(r.ids), r.ids
        first = state is None
        if first:
            zero = np.zeros(n_all)
            state = dict.fromkeys("abPR", zero) | {"seen": set(), "l0": None, "s0": None}
        state = {k: (v.copy() if isinstance(v, np.ndarray) else v) for k, v in state.items()}
        s = r.deltas @ r.deltas.sum(axis=0)
        loss = r.train_losses
        nu, q = loss / loss.sum(), s / s.sum()
        if first:
            state["l0"], state["s0"] = loss.mean(), s.mean()
        for a, p, new, rate in (
            ("a", "P", nu, beta * loss.mean() / state["l0"]),
            ("b", "R", q, beta * s.mean() / state["s0"]),
        ):
            rate = min(max(rate, 0.0), 1.0) if bounded else rate
            state[a][ids] = (1 - rate) * state[a][ids] + rate * new
            before = sum(state[p][c] if c in state["seen"] else 1 / n_all for c in ids)
            value = state[p][ids] + state[a][ids]
            state[p][ids] = value / value.sum() * before
        state["seen"] = state["seen"] | set(ids)
        P, R = state["P"][ids], state["R"][ids]
        kappa = np.std(P, ddof=1) / (np.std(P, ddof=1) + np.std(R, ddof=1))
        w = kappa * P + (1 - kappa) * R
        w = w / w.sum()
        if first:
            return w @ r.deltas, state
        rates = np.minimum((1 / nu) / (1 / nu).sum() * m * drop, 1)
        step = np.zeros(r.deltas.shape[1])
        for b in r.blocks:
            rows, sizes = r.deltas[:, b].copy(), []
            n = rows.shape[1]
            for i in range(m):
                count = int(n * rates[i])
                order = np.argsort(np.abs(rows[i]), kind="stable")[:count]
                sizes.append(np.abs(rows[i][order[::10]]).mean() if count else math.nan)
                rows[i][order] = 0
            x = w @ rows
            left = rows[np.abs(rows).sum(axis=1) > 0]
            unit = left / np.linalg.norm(left, axis=1, keepdims=True)
            norms = np.linalg.norm(unit, axis=0)
            spread = [
                np.std(unit[:, e] / norms[e], ddof=1) if norms[e] > 0 and len(left) > 1 else np.inf
                for e in range(n)
            ]
            least = np.argsort(spread, kind="stable")[: int(n * drop)]
            if len(least):
                agreed, size = np.abs(x[least[::10]]).mean(), np.mean(sizes)
                if agreed != 0 and size / agreed < 1:
                    x[least] *= 1 + size / agreed
            step[b] = x
        return step, state

    return rule


def craft(server_lr: float, groups: Sequence[slice]) -> Callable[[Round, Any], Any]:
    def rule(r: Round, previous: Any) -> Any:
        d = np.zeros(r.deltas.shape[1])
        previous = d if previous is None else previous
        for b in groups:
            rows, rho = r.deltas[:, b], r.counts / r.counts.sum()
            U = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            if len(rows) == 1:
                d[b] = rows[0]
                continue
            past = previous[b]
            past = past / np.linalg.norm(past) if past.any() else past
            d[b] = past + np.linalg.pinv(U) @ (rho - U @ past)
        return server_lr * d, d

    return rule
