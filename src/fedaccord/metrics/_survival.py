"""How well risks order who has an event first."""

from __future__ import annotations

import numpy as np

from ._values import Values, Vector, as_finite


def concordance_index(risks: Values, times: Values, events: Values) -> float | None:
    r"""Return Harrell's index: the fraction of comparable pairs that the risks order rightly.

    A pair is comparable if it is known who had the event first: an observed event before the
    other's time, or at the same time as the other's censoring. Two events at the same time are not
    comparable. A comparable pair of equal risks counts one half.

    Source: Harrell, Califf, Pryor, Lee and Rosati, "Evaluating the yield of medical tests", 1982.

    :param risks: ``[n]``, the higher the earlier the event is expected.
    :param times: ``[n]``, of the event or of the end of observation.
    :param events: ``[n]``, whether the event was observed.
    :return: In ``[0, 1]``, 0.5 for risks at random; ``None`` if no pair is comparable.
    :raises ValueError: If there is no example, the lengths differ, or a risk or time is not finite.
    """
    risk, time, observed = _read(risks, times, events)
    right, comparable = 0.0, 0
    for first in np.flatnonzero(observed):
        later = (time > time[first]) | ((time == time[first]) & ~observed)
        others = risk[later]
        comparable += len(others)
        right += float((others < risk[first]).sum()) + 0.5 * float((others == risk[first]).sum())
    return right / comparable if comparable else None


def _read(
    risks: Values, times: Values, events: Values
) -> tuple[Vector, Vector, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
    risk, time, event = (
        as_finite(values, name)
        for values, name in ((risks, "risks"), (times, "times"), (events, "events"))
    )
    if not len(risk) == len(time) == len(event):
        raise ValueError(
            f"`risks`, `times` and `events` must have equal lengths. "
            f"Got {len(risk)}, {len(time)} and {len(event)}."
        )
    return risk, time, event != 0
