"""One round, from the rule's first request to the state after it."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .buffers import merge
from .clients import ClientAlgorithm, ClientResult, ClientState, Job, LocalTraining
from .cohort import Cohort, check_examples
from .errors import (
    ClientFailedError,
    ContributionError,
    EmptyRoundError,
    FedAccordError,
    NonFiniteError,
)
from .executors import ClientFailure, Executor, own_settings, serial
from .federation import Federation
from .linalg import norm
from .random import derive
from .reply import Policy, Reply
from .rule import Aggregation, Diagnostic, Flow, Request, Rule, S
from .screening import common_fields, problem_with
from .training import RoundResult, TrainingState


def drive(flow: Flow[S], answer: Callable[[Request], Cohort]) -> Aggregation[S]:
    """Run a rule's round to its end.

    :param flow: What ``rule.round(state, params)`` gave.
    :param answer: Sends a request to the clients and stacks their replies.
    """
    cohort: Cohort | None = None
    with contextlib.closing(flow):
        while True:
            try:
                request = next(flow) if cohort is None else flow.send(cohort)
            except StopIteration as stop:
                aggregation: Aggregation[S] = stop.value
                return aggregation
            cohort = answer(request)


def run_round(
    rule: Rule[Any],
    federation: Federation,
    training: TrainingState,
    *,
    client_ids: Sequence[int],
    local: LocalTraining,
    seed: int = 0,
    executor: Executor = serial,
    policy: Policy | None = None,
) -> RoundResult:
    """Run one round. All or nothing: whatever is raised, ``training`` is still good.

    :param rule: The rule.
    :param federation: Who takes part.
    :param training: The state before the round.
    :param client_ids: The clients to ask, in any order.
    :param local: How they train.
    :param seed: The run's seed; the same for all its rounds.
    :param executor: Who carries out the jobs.
    :param policy: What to do with unusable contributions and empty rounds; raise by default.
    :raises ContributionError: If a contribution is unusable and the policy is to raise.
    :raises EmptyRoundError: If nothing is left to aggregate and the policy is to raise.
    :raises NonFiniteError: If the step is not finite.
    :raises ValueError: If an id is unknown or repeated.
    """
    ids = _checked_ids(client_ids, len(federation.clients))
    round_ = _Round(rule, federation, training, ids, local, seed, executor, policy or Policy())
    with own_settings():
        try:
            flow = rule.round(training.rule_state, training.params.clone())
            aggregation = drive(flow, round_.answer)
        except EmptyRoundError:
            if round_.policy.on_empty == "raise":
                raise
            after = replace(training, round=training.round + 1)
            return round_.result(after, {}, empty=True)
        return round_.finish(aggregation)


class _Round:
    """One round in the making: answers the rule's requests and keeps what clients leave behind."""

    def __init__(
        self,
        rule: Rule[Any],
        federation: Federation,
        training: TrainingState,
        client_ids: tuple[int, ...],
        local: LocalTraining,
        seed: int,
        executor: Executor,
        policy: Policy,
    ) -> None:
        self.policy = policy
        self._needs = rule.needs
        self._algorithms = rule.client_algorithms(local)
        self._federation = federation
        self._training = training
        self._ids = client_ids
        self._seed = seed
        self._executor = executor
        self._failures: dict[int, str] = {}
        self._client_states = dict(training.client_states)
        self._buffers: dict[int, tuple[int, Mapping[str, Tensor]]] = {}
        self._not_asked = {c for c in client_ids if len(federation.clients[c]) == 0}
        self._without = set(self._not_asked)

    def answer(self, request: Request) -> Cohort:
        """Send a request to every client that is still with us, and stack the replies."""
        asked = [c for c in self._ids if c not in self._failures and c not in self._not_asked]
        if not asked and not self._failures:
            check_examples(self._ids, [0] * len(self._ids), self._training.round)
        jobs = [self._job(client, request) for client in asked]
        if request.phase not in self._algorithms:
            raise ValueError(
                f"The rule asked for phase '{request.phase}' without a client algorithm for it. "
                f"It has {sorted(self._algorithms)}."
            )
        algorithm: ClientAlgorithm = self._algorithms[request.phase]
        results = self._executor(algorithm, jobs, self._federation.model)
        replies = []
        for client, result in zip(asked, results, strict=True):
            reply = self._accept(client, result, request.phase)
            if reply is not None:
                replies.append(reply)
        if not replies:
            lost = [f"client {client}" for client in self._failures]
            more = f" and {len(lost) - 10} more" if len(lost) > 10 else ""
            first = next(iter(self._failures.values()), "")
            raise EmptyRoundError(
                f"Round {self._training.round} has no contribution left to aggregate. Dropped: "
                f"{', '.join(lost[:10])}{more}. The first because: {first}"
            )
        common = common_fields(replies, self._needs.get(request.phase, ()))
        return Cohort.stack(
            [
                replace(reply, fields={k: v for k, v in reply.fields.items() if k in common})
                for reply in replies
            ],
            round=self._training.round,
            seed=self._seed,
            spec=self._federation.spec,
        )

    def finish(self, aggregation: Aggregation[Any]) -> RoundResult:
        """Apply the step."""
        if not isinstance(aggregation, tuple) or len(aggregation) != 3:
            raise TypeError(
                f"A rule must give `Aggregation(step, state, diagnostics)`. Got "
                f"{type(aggregation).__name__}."
            )
        step = aggregation[0]
        if step.shape != self._training.params.shape:
            raise ValueError(
                f"A rule's step must have shape {tuple(self._training.params.shape)}. Got "
                f"{tuple(step.shape)}."
            )
        step = step.to(self._training.params)
        length = norm(step)
        params = self._training.params + step
        if not torch.isfinite(params).all():
            raise NonFiniteError(
                f"The model must stay finite. The step of round {self._training.round} has length "
                f"{length:.3g}. Lower `lr` or `server_lr`."
            )
        trained = dict(sorted(self._buffers.items()))
        local = self._federation.buffers == "local"
        shared = merge(list(trained.values())) if trained and not local else {}
        own = {client: kept for client, (_, kept) in trained.items()} if local else {}
        after = TrainingState(
            round=self._training.round + 1,
            params=params,
            rule_state=aggregation.state,
            client_states=self._client_states,
            buffers={**self._training.buffers, **shared},
            client_buffers={**self._training.client_buffers, **own},
        )
        return self.result(after, aggregation.diagnostics, step_norm=length)

    def result(
        self,
        after: TrainingState,
        diagnostics: Mapping[str, Diagnostic],
        *,
        empty: bool = False,
        step_norm: float = 0.0,
    ) -> RoundResult:
        """Put the record together."""
        return RoundResult(
            training=after,
            client_ids=self._ids,
            diagnostics=diagnostics,
            num_examples={c: len(self._federation.clients[c]) for c in self._ids},
            failures=self._failures,
            without_examples=tuple(sorted(self._without)),
            empty=empty,
            step_norm=step_norm,
        )

    def _job(self, client: int, request: Request) -> Job:
        training, spec = self._training, self._federation.spec
        own = training.client_buffers.get(client, {})
        return Job(
            client_id=client,
            layout=spec.layout,
            losses=self._federation.losses,
            data=self._federation.clients[client],
            params=request.params,
            payload=request.payload,
            seed=derive(self._seed, "client", training.round, request.phase, client),
            state=self._client_states.get(client),
            buffers={**training.buffers, **own},
            round=training.round,
            num_tasks=spec.num_tasks,
        )

    def _accept(
        self, client: int, result: ClientResult | ClientFailure, phase: str
    ) -> Reply | None:
        if isinstance(result, ClientFailure):
            if isinstance(result.error, FedAccordError) and not isinstance(
                result.error, ContributionError
            ):
                raise result.error  # the set-up is wrong, not this client
            problem: ContributionError | None = ClientFailedError(
                f"Client {client} failed in round {self._training.round}: "
                f"{type(result.error).__name__}: {result.error}"
            )
            cause: Exception | None = result.error
        else:
            problem = problem_with(
                client,
                result,
                training=self._training,
                spec=self._federation.spec,
                needs=self._needs.get(phase, ()),
                phase=phase,
            )
            cause = None
        if problem is not None:
            if self.policy.on_invalid == "raise":
                raise problem from cause
            self._failures[client] = str(problem)
            _restore(self._client_states, self._training.client_states, client)
            self._buffers.pop(client, None)
            return None
        assert isinstance(result, ClientResult)
        reply = Reply(client, result.num_examples, result.fields)
        if result.state is None:
            self._client_states.pop(client, None)
        else:
            self._client_states[client] = result.state
        if result.num_examples == 0:
            self._without.add(client)
        if result.buffers:
            self._buffers[client] = (result.num_examples, result.buffers)
        return reply


def _restore(
    states: dict[int, ClientState], before: Mapping[int, ClientState], client: int
) -> None:
    if client in before:
        states[client] = before[client]
    else:
        states.pop(client, None)


def _checked_ids(client_ids: Sequence[int], num_clients: int) -> tuple[int, ...]:
    try:
        ids = tuple(sorted(operator.index(client) for client in client_ids))
    except TypeError as error:
        raise ValueError(f"Client ids must be integers. Got {list(client_ids)}.") from error
    if not ids:
        raise ValueError("A round needs at least one client. Got no ids.")
    if len(set(ids)) < len(ids):
        raise ValueError(f"Client ids must be distinct. Got {ids}.")
    if ids[0] < 0 or ids[-1] >= num_clients:
        raise ValueError(f"Client ids must be in [0, {num_clients}). Got {ids}.")
    return ids
