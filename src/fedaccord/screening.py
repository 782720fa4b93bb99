"""Whether one client's contribution can be used, said about that client alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .clients import ClientResult, ClientState
from .errors import ContributionError, MalformedReplyError, MissingFieldError, NonFiniteError
from .layout import Spec
from .reply import Reply, malformed, misfit, not_finite
from .training import TrainingState


def problem_with(
    client: int,
    result: ClientResult,
    *,
    training: TrainingState,
    spec: Spec,
    needs: Sequence[str],
    phase: str,
) -> ContributionError | None:
    """Say what makes a client's result unusable, or nothing.

    :param client: The client.
    :param result: What its algorithm returned.
    :param training: What it received.
    :param spec: The federation's shapes.
    :param needs: Fields the rule needs.
    :param phase: What was asked.
    """
    if not isinstance(result, ClientResult):
        return MalformedReplyError(
            f"A client algorithm must return `ClientResult`. Got {type(result).__name__} from "
            f"client {client}."
        )
    try:
        reply = Reply(client, result.num_examples, result.fields)
    except ValueError as error:
        return MalformedReplyError(f"{error} It came from client {client}.")
    problem = screen(reply, spec=spec, needs=needs, phase=phase)
    update = reply.fields.get("update")
    if problem is None and update is not None and update.dtype != training.params.dtype:
        return MalformedReplyError(
            f"`update` must have the parameters' dtype {training.params.dtype}. Got "
            f"{update.dtype} from client {client}."
        )
    return (
        problem
        or _problem_with_state(client, result.state or {}, training.buffers)
        or _problem_with_buffers(client, result.buffers, training.buffers)
    )


def screen(
    reply: Reply, *, spec: Spec, needs: Sequence[str], phase: str = "train"
) -> MissingFieldError | MalformedReplyError | NonFiniteError | None:
    """Say what makes one reply unusable, or nothing if it can be used.

    The simulator and the Flower strategy ask this before :meth:`Cohort.stack`, so that one client's
    mistake can be attributed to it instead of failing the round.

    :param reply: The reply.
    :param spec: The federation's clients and shapes.
    :param needs: Fields the rule needs; others may be there too.
    :param phase: What was asked, for the message.
    """
    if (problem := malformed(reply)) is not None:
        return problem
    who = f"client {reply.client_id}"
    if missing := [name for name in needs if name not in reply.fields]:
        return MissingFieldError(
            f"The rule needs {list(needs)} in phase '{phase}', but {who} did not report {missing}. "
            f"It reported {sorted(reply.fields)}."
        )
    if (problem := misfit(reply, spec)) is not None:
        return problem
    for name, value in reply.fields.items():
        if (what := not_finite(name, value, spec.layout)) is not None:
            return NonFiniteError(
                f"Every contribution must be finite. {what} at {who}. Lower the learning rate, or "
                f'drop such clients with `Policy(on_invalid="drop")`.'
            )
    return None


def common_fields(replies: Sequence[Reply], needs: Sequence[str]) -> set[str]:
    """What every reply holds alike; what some hold beyond it is of no use to a rule."""
    common = set.intersection(*(set(reply.fields) for reply in replies))
    first = replies[0].fields
    return {
        name
        for name in common
        if name in needs
        or all(
            reply.fields[name].shape == first[name].shape
            and reply.fields[name].dtype == first[name].dtype
            for reply in replies
        )
    }


def _problem_with_state(
    client: int, state: ClientState, received: Mapping[str, Tensor]
) -> ContributionError | None:
    for name, value in state.items():
        # a model of the client's own has buffers too, which may be infinite from the start
        usual = name not in received or torch.isfinite(received[name]).all()
        if usual and (what := not_finite(name, value, None)) is not None:
            return NonFiniteError(
                f"What a client keeps must stay finite. {what} at client {client}. Lower the "
                f"learning rate."
            )
    return None


def _problem_with_buffers(
    client: int, buffers: Mapping[str, Tensor], received: Mapping[str, Tensor]
) -> ContributionError | None:
    for name, buffer in buffers.items():
        sent = received.get(name)
        if sent is None or sent.shape != buffer.shape:
            shape = "no such buffer" if sent is None else f"shape {tuple(sent.shape)}"
            return MalformedReplyError(
                f"Buffers must keep their names and shapes. The model has {shape} for `{name}`, "
                f"client {client} sent {tuple(buffer.shape)}."
            )
        what = not_finite(name, buffer, None)
        # an attention mask is infinite from the start, statistics are not
        if what is not None and torch.isfinite(sent).all():
            return NonFiniteError(f"Buffers must stay finite. {what} at client {client}.")
    return None
