"""Sentences that state what a comparison of two runs measured, whatever it was."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..experiments import Run, count, measures, spell

NO_DIFFERENCE = 0.05  # of what is shown with one digit
PUBLISHED = {"Uniform": (86.41, 76.98), "FedHV": (86.35, 77.03)}
"""MeanAcc and WorstAcc in per cent of MNIST-FMNIST, FedHV paper, Table 1."""


def about_clients(baseline: Run, fair: Run) -> list[str]:
    """What a rule that looks at clients changed against averaging.

    :param baseline: For example FedAvg's run.
    :param fair: For example FedPCD's, on the same split, schedule and seed.
    """
    old, new = _by_name(baseline), _by_name(fair)
    worst = next(name for name in new if name.startswith("worst"))
    said = [
        f"{_setting(fair)}: accuracy on the whole test set was {_pair(old, new, 'test set')} "
        f"with {fair.name} against {baseline.name}.",
        f"The mean over clients was {_pair(old, new, 'client mean')}, the {worst} of the "
        f"clients {_pair(old, new, worst)}, and the spread between clients "
        f"{_pair(old, new, 'spread')}.",
        _reached(baseline, fair),
        _rounds_went(fair),
    ]
    return [*said, _caution(baseline, fair)]


def about_tasks(baseline: Run, fair: Run) -> list[str]:
    """What a rule that looks at tasks changed against equal weights.

    :param baseline: For example Uniform's run.
    :param fair: For example FedHV's, on the same split, schedule and seed.
    """
    old, new = _by_name(baseline), _by_name(fair)
    said = [
        f"{_setting(fair)}: MeanAcc was {_pair(old, new, 'MeanAcc')} and WorstAcc "
        f"{_pair(old, new, 'WorstAcc')} with {fair.name} against {baseline.name}.",
        f"The hypervolume of the test losses was {_plain(new, 'HV')} against {_plain(old, 'HV')}, "
        f"the mean loss {_plain(new, 'MeanLoss')} against {_plain(old, 'MeanLoss')}.",
    ]
    settings = fair.experiment.calibration
    if settings is not None:
        reference = ", ".join(f"{value:.3f}" for value in fair.experiment.rule.options["reference"])
        part = 100 * settings.rounds / fair.experiment.rounds
        took = count(settings.rounds, "round")
        said.append(
            f"{fair.name}'s reference ({reference}) took {took} of Uniform before the run, "
            f"{part:.0f} % of the run's own {fair.experiment.rounds}, which are not in the table."
        )
    seen = (record["diagnostics"] for record in fair.records)
    if weights := [d["task_weights"] for d in seen if "task_weights" in d]:
        said.append(_weights(fair, weights))
    return [*said, _caution(baseline, fair)]


def beside_published(baseline: Run, fair: Run) -> list[str]:
    """The published numbers of this pair beside ours.

    :param baseline: Uniform's run.
    :param fair: FedHV's.
    """
    ours = {run.name: _by_name(run) for run in (baseline, fair)}
    parts = [
        f"{name} {PUBLISHED[name][0]:.2f} / {PUBLISHED[name][1]:.2f} % "
        f"(here {100 * ours[name]['MeanAcc'][0]:.1f} / {100 * ours[name]['WorstAcc'][0]:.1f} %)"
        for name in ours
        if name in PUBLISHED
    ]
    return [
        f"Published MeanAcc / WorstAcc on MNIST-FMNIST: {', '.join(parts)}: nearly equal there. "
        f"Settings differ: 60,000 training pictures, 500 rounds, batch 128 and three seeds there; "
        f"10,000 pictures, {fair.experiment.rounds} rounds, batch "
        f"{fair.experiment.local.batch_size} and one seed here."
    ]


def _by_name(run: Run) -> dict[str, tuple[float, bool]]:
    return {measure.name: (measure.value, measure.fraction) for measure in measures(run.final)}


def _plain(numbers: Mapping[str, Any], name: str) -> str:
    return spell(numbers[name][0], fraction=False)


def _setting(run: Run) -> str:
    experiment = run.experiment
    clients, asked = len(run.split["sizes"]), len(run.records[0]["asked"])
    length = count(experiment.rounds, "round")
    return (
        f"On {experiment.dataset} ({clients} clients, {asked} a round, {length}, "
        f"seed {experiment.seed})"
    )


def _pair(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> str:
    """``"81.3 % against 47.1 % (34.2 points more)"``."""
    before, now = 100 * old[name][0], 100 * new[name][0]
    gain = now - before
    if abs(gain) < NO_DIFFERENCE:
        change = "no difference"
    else:
        change = f"{abs(gain):.1f} points {'more' if gain > 0 else 'less'}"
    return f"{now:.1f} % against {before:.1f} % ({change})"


def _reached(baseline: Run, fair: Run) -> str:
    goal = baseline.final["clients"]["summary"]["mean"]
    for rounds, evaluation in fair.evaluations:
        if evaluation["clients"]["summary"]["mean"] >= goal:
            return (
                f"{fair.name} had reached {baseline.name}'s final client mean after {rounds} of "
                f"{fair.experiment.rounds} rounds."
            )
    return f"{fair.name} did not reach {baseline.name}'s final client mean."


def _rounds_went(fair: Run) -> str:
    outcomes = fair.summary.get("outcomes", {})
    rounds = len(fair.records)
    seen = [record["diagnostics"] for record in fair.records]
    represented = [d["constrained_now"] + d["constrained_cached"] for d in seen if "outcome" in d]
    short = [len(d["violated"]) for d in seen if "outcome" in d]
    words = {
        "average": "took the average as it was (nobody fell short)",
        "projected": "bent the average so that every client represented made progress",
        "infeasible": "found no direction for everybody and took the average",
        "protected": "protected those who could make progress",
        "stalled": "made no step",
        "collapsed": "made no step, the only admissible one being zero",
        "no-average": "made no step, the updates cancelling",
    }
    told = [f"in {outcomes[key]} it {text}" for key, text in words.items() if outcomes.get(key)]
    text = f"Of {count(rounds, 'round')} of {fair.name}, {'; '.join(told)}."
    if represented:
        text += (
            f" On average {sum(represented) / len(represented):.0f} clients were represented, of "
            f"whom the plain average would have left {sum(short) / len(short):.0f} short."
        )
    if not outcomes.get("infeasible"):
        text += " No round was infeasible."
    if fair.summary.get("solver_fallbacks"):
        text += f" A second solver was used {fair.summary['solver_fallbacks']} times."
    return text


def _weights(fair: Run, weights: list[Any]) -> str:
    names = fair.final["tasks"]["tasks"]
    first, last = weights[0], weights[-1]
    each = ", ".join(
        f"{name} {before:.2f} to {after:.2f}"
        for name, before, after in zip(names, first, last, strict=True)
    )
    floored = fair.summary.get("floored_rounds", 0)
    reached = f"in {count(floored, 'round')}" if floored else "in no round"
    return (
        f"Task weights went from the first to the last round: {each}; a loss reached its "
        f"reference {reached}."
    )


def _caution(baseline: Run, fair: Run) -> str:
    # of a difference between two independent accuracies near these, the cautious case: on the
    # same images errors are shared
    shares = [run.final["tasks"]["worst_accuracy"] for run in (baseline, fair)]
    size = fair.final["examples"]
    error = 200 * math.sqrt(sum(share * (1 - share) for share in shares) / size)
    return (
        f"One seed and {size:,} test pictures: a difference of less than about {error:.1f} points "
        f"between accuracies on the test set may be chance."
    )
