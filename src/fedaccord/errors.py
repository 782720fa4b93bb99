"""The exceptions of fedaccord.

::

    FedAccordError
    ├── ContributionError            a client's contribution cannot be used
    │   ├── MissingFieldError        a field that the rule needs was not reported
    │   ├── MalformedReplyError      wrong shape, duplicate id, unequal fields
    │   ├── NonFiniteError           NaN or infinity in a contribution
    │   └── ClientFailedError        the client's own code raised
    ├── EmptyRoundError              nobody is left to aggregate, or the total weight is zero
    ├── InfeasibleError              no direction gives every client progress
    ├── SolverError                  an answer could not be proven by its optimality conditions
    ├── StaleHistoryError            a history was used after a later one took over its memory
    ├── UncontrolledRandomnessError  a random operation that the seed does not reach
    ├── CheckpointError              a file that is no checkpoint of this run
    ├── DataFileError                a data file that is damaged, hostile or of another form
    ├── MissingDataError             a dataset's files are not where they were looked for
    └── UnknownNameError             a name that nothing answers to (also a ``ValueError``)

Wrong values of arguments raise the built-in ``ValueError`` where the object is built.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FedAccordError(Exception):
    """Base of every exception this library raises on its own account."""


class ContributionError(FedAccordError):
    """A client's contribution cannot be used."""


class MissingFieldError(ContributionError):
    """A field that the rule needs was not reported."""


class MalformedReplyError(ContributionError):
    """A reply has the wrong shape, a duplicate id or fields unlike the others'."""


class NonFiniteError(ContributionError):
    """A contribution, or a step made of them, contains NaN or infinity."""


class ClientFailedError(ContributionError):
    """The client's own code raised; the cause is chained."""


class EmptyRoundError(FedAccordError):
    """No contribution is left to aggregate, or the total weight of those left is zero."""


class InfeasibleError(FedAccordError):
    """No direction gives every represented client progress."""


class SolverError(FedAccordError):
    """No solver's answer could be proven by its optimality conditions."""


class StaleHistoryError(FedAccordError):
    """A history was used after a later one took over its memory."""


class UncontrolledRandomnessError(FedAccordError):
    """A random operation drew from a generator that the run's seed does not reach."""


class CheckpointError(FedAccordError):
    """A file is no checkpoint, is damaged, or belongs to another rule or model."""


class DataFileError(FedAccordError):
    """A data file is damaged, is not what its name says, or asks for more than may be read."""


class MissingDataError(FedAccordError):
    """A dataset's files are not where they were looked for; the message says what to put where."""


class UnknownNameError(FedAccordError, ValueError):
    """A name that nothing answers to; the message lists the nearest valid ones."""

    @classmethod
    def among(cls, kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
        """Build the error for ``name``, naming the nearest of the ``known`` ones.

        :param kind: What was looked for, for example ``"rule"``.
        :param name: What was asked for.
        :param known: Every valid name.
        """
        choices = sorted(known)
        folded = {choice.casefold(): choice for choice in choices}
        close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
        hint = f"Did you mean `{folded[close[0]]}`? " if close else ""
        listed = ", ".join(f"`{choice}`" for choice in choices)
        return cls(f"Unknown {kind} `{name}`. {hint}Known: {listed}.")
