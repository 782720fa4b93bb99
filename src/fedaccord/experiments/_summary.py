"""What a run amounts to: what it reached, and everything that did not go as usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ._measures import count
from ._records import Record


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """Count what happened in a run's rounds, and repeat the last evaluation.

    :param records: All its rounds.
    :return: ``rounds``; ``contributions`` (asked for, used); ``dropped`` (contributions not used,
        by client), ``without_examples`` (likewise), ``empty_rounds``; for rules that tell,
        ``outcomes`` (rounds by outcome), ``solver_fallbacks`` and ``floored_rounds``;
        ``test_loss`` (of the first and the last evaluation, null where it was not finite); and
        ``final``, the last evaluation.
    """
    seen = [record["diagnostics"] for record in records]
    summary: dict[str, Any] = {
        "rounds": len(records),
        "contributions": {
            "asked": sum(len(record["asked"]) for record in records),
            "used": sum(len(record["answered"]) for record in records),
        },
        "dropped": _by_client(client for record in records for client in record["failures"]),
        "without_examples": _by_client(
            str(client) for record in records for client in record["without_examples"]
        ),
        "empty_rounds": sum(record["empty"] for record in records),
    }
    if any("outcome" in diagnostics for diagnostics in seen):
        summary["outcomes"] = dict(
            sorted(Counter(d["outcome"] for d in seen if "outcome" in d).items())
        )
        summary["solver_fallbacks"] = sum(d.get("solver_fallbacks", 0) for d in seen)
    if any("floored_tasks" in diagnostics for diagnostics in seen):
        summary["floored_rounds"] = sum(bool(d.get("floored_tasks")) for d in seen)
    evaluations = [record["evaluation"] for record in records if "evaluation" in record]
    losses = [evaluation["tasks"]["mean_loss"] for evaluation in evaluations]
    summary["test_loss"] = {"first": losses[0], "last": losses[-1]} if losses else None
    summary["final"] = evaluations[-1] if evaluations else None
    return summary


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Say in sentences what was dropped, skipped or fell back; empty if nothing was.

    :param summary: From :func:`summarise`.
    """
    rounds, said = summary["rounds"], []
    if summary["dropped"]:
        said.append(_clients(summary["dropped"], "contribution", "dropped"))
    if summary["without_examples"]:
        said.append(_clients(summary["without_examples"], "request", "without examples"))
    if summary["empty_rounds"]:
        said.append(f"{summary['empty_rounds']} of {rounds} rounds empty: the model stayed")
    outcomes = summary.get("outcomes", {})
    said += [
        f"{outcomes[name]} of {rounds} rounds {meaning}"
        for name, meaning in _OUTCOMES.items()
        if outcomes.get(name)
    ]
    if summary.get("solver_fallbacks"):
        said.append(f"{summary['solver_fallbacks']} times a second solver had to be used")
    if summary.get("floored_rounds"):
        said.append(f"{summary['floored_rounds']} of {rounds} rounds had a loss at its reference")
    if summary.get("test_loss"):
        said += _divergence(**summary["test_loss"])
    return said


# a mean loss of a hundred nats gives the right answers a probability of e^-100
HOPELESS = 100.0
FAR_ABOVE = 10.0


def _divergence(first: float | None, last: float | None) -> list[str]:
    """Whether the test loss ended where no useful training ends."""
    if last is None:
        return ["the test loss is not finite at the end: training diverged"]
    if last > HOPELESS or (first is not None and last > FAR_ABOVE * first):
        began = "" if first in (None, last) else f", from {first:.3g} at the first evaluation"
        return [f"the test loss is {last:.3g} at the end{began}: training diverged"]
    return []


_OUTCOMES = {
    "infeasible": "infeasible: no direction for every client, so the average was taken",
    "protected": "protected: progress for those who can have it, nobody else made worse",
    "stalled": "stalled: no step that makes no client worse",
    "collapsed": "collapsed: the only admissible step was zero",
    "no-average": "without an average to stay near: the updates cancel",
    "stationary": "stationary: the rule's step was zero",
    "held-by-zero-updates": "held by clients that did not move: the rule's step was zero",
    "all-zero": "without a step: nobody moved",
    "no-examples": "without a step: only clients without examples moved",
    "uniform": "with equal weights: those of the clients asked had become zero",
}


def _by_client(clients: Any) -> dict[str, int]:
    return dict(sorted(Counter(clients).items(), key=lambda item: int(item[0])))


def _clients(counts: Mapping[str, int], thing: str, what: str) -> str:
    total = sum(counts.values())
    listed = ", ".join(list(counts)[:10]) + (", ..." if len(counts) > 10 else "")
    return f"{count(total, thing)} {what} (clients {listed})"
