"""Rounds on one machine, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

from torch import Tensor

from .clients import LocalSGD, LocalTraining
from .errors import MissingFieldError
from .executors import Executor, serial
from .federation import Federation
from .random import generator
from .reply import Policy
from .round import run_round
from .rule import Rule, remembers
from .samplers import Sampler
from .training import RoundResult, TrainingState


def check(rule: Rule[Any], local: LocalTraining) -> None:
    """Check that clients will report what the rule needs, before anything is trained.

    :raises MissingFieldError: If they will not; the message names fields and client algorithm.
    """
    if not isinstance(rule, Rule):
        raise TypeError(f"`rule` must be a rule, such as `FedAvg()`. Got {rule!r}.")
    if not (callable(local) and hasattr(local, "reporting")):
        raise TypeError(
            f"`local` must be local training, such as `LocalSGD(lr=0.1)`. Got {local!r}."
        )
    algorithms = rule.client_algorithms(local)
    for phase, needed in rule.needs.items():
        if phase not in algorithms:
            raise MissingFieldError(
                f"{type(rule).__name__} has phase '{phase}' but no client algorithm for it. "
                f"It has {sorted(algorithms)}."
            )
        reports = algorithms[phase].reports
        if missing := [name for name in needed if name not in reports]:
            raise MissingFieldError(
                f"{type(rule).__name__} needs {missing} in phase '{phase}', but "
                f"{type(algorithms[phase]).__name__} reports {list(reports)}. Use a client "
                f"algorithm that reports it."
            )


def start(
    rule: Rule[Any],
    federation: Federation,
    *,
    seed: int = 0,
    state_dict: Mapping[str, Tensor] | None = None,
) -> TrainingState:
    """The state before round 0.

    :param rule: The rule to run.
    :param federation: Who takes part.
    :param seed: The run's seed; the model's initialisation follows from it.
    :param state_dict: Start from these values instead.
    :raises ValueError: If the rule's hyperparameters do not fit the federation.
    """
    params, buffers = (
        federation.initial(seed) if state_dict is None else federation.from_state_dict(state_dict)
    )
    return TrainingState(0, params, rule.init(federation.spec), buffers=buffers)


def simulate(
    rule: Rule[Any],
    federation: Federation,
    *,
    rounds: int,
    local: LocalTraining | None = None,
    sampler: Sampler | None = None,
    seed: int = 0,
    executor: Executor = serial,
    training: TrainingState | None = None,
    policy: Policy | None = None,
) -> Iterator[RoundResult]:
    """Run rounds one after the other; evaluate, save, plot or stop between them.

    Everything is checked before the first round, at the call.

    :param rule: The rule.
    :param federation: Who takes part.
    :param rounds: Total number of rounds, those of ``training`` included.
    :param local: How clients train; :class:`~fedaccord.LocalSGD` with its defaults if not given.
    :param sampler: Who is asked; everybody if not given.
    :param seed: The run's seed.
    :param executor: Who carries out the jobs.
    :param training: Go on from here instead of from the beginning.
    :param policy: What to do with unusable contributions and empty rounds; raise by default.
    :raises MissingFieldError: If clients will not report what the rule needs.
    :raises ValueError: If ``rounds`` is negative, or rule or sampler do not fit the federation.
    """
    if not isinstance(rounds, Integral) or rounds < 0:
        raise ValueError(f"`rounds` must be an integer of at least 0. Got {rounds!r}.")
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"`policy` must be a `Policy`. Got {policy!r}.")
    local = local or LocalSGD()
    check(rule, local)
    if sampler is not None:
        if not hasattr(sampler, "size") or isinstance(sampler, type):
            raise TypeError(
                f"`sampler` must have a method `size`, like `UniformSampler(10)`. Got {sampler!r}."
            )
        sampler.size(len(federation.clients))
    if not callable(executor) or isinstance(executor, type):
        raise TypeError(f"`executor` must be `serial` or `Threads()`. Got {executor!r}.")
    state = training if training is not None else start(rule, federation, seed=seed)
    _check_start(rule, federation, state, rounds)

    def run() -> Iterator[RoundResult]:
        current = state
        everybody = range(len(federation.clients))
        while current.round < rounds:
            rng = generator(seed, "sample", current.round)
            result = run_round(
                rule,
                federation,
                current,
                client_ids=everybody if sampler is None else sampler(len(everybody), rng),
                local=local,
                seed=seed,
                executor=executor,
                policy=policy,
            )
            current = result.training
            yield result

    return run()


def _check_start(
    rule: Rule[Any], federation: Federation, training: TrainingState, rounds: int
) -> None:
    """Refuse to go on from a state of something else."""
    if not isinstance(training, TrainingState):
        raise TypeError(
            f"`training` must be a training state, such as `result.training`. Got "
            f"{type(training).__name__}."
        )
    if tuple(training.params.shape) != (federation.spec.dim,):
        raise ValueError(
            f"`training` must be of this federation's model with {federation.spec.dim} parameters. "
            f"Got {tuple(training.params.shape)}."
        )
    if not remembers(rule, training.rule_state):
        raise ValueError(
            f"`training` must be a state of {type(rule).__name__}. Its rule remembered "
            f"{type(training.rule_state).__name__}."
        )
    if training.round > rounds:
        raise ValueError(
            f"`rounds` is the total. Got {rounds}, but {training.round} are done already."
        )
