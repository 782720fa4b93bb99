"""What is measured in a run, and over whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from ..clients import PERSONAL, LocalTraining
from ..executors import own_settings
from ..metrics import after_local_steps, evaluate, personal_models, score_for, task_summary
from ..metrics import moment as moment_after
from ..training import TrainingState
from ._client_values import ByClass, ClientValues, OwnRows
from ._population import ALL, HELD_OUT, Population


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Measures the global model on every task and every client, and the models clients have.

    A client's value is measured on its own test rows where it has some: because the data come by
    client with test rows, or because samples were held out. Else, with one task of classes, it is
    the accuracies of classes on the whole test set weighted by the client's shares. With several
    tasks and no rows of their own, only tasks are measured.

    :param population: The data, who trains on what, and who is tested on what.
    :param local: How clients train, for models after local steps.
    :param adapt: Whether every client's model after its own local training is measured too, after
        the last round.
    :param seed: The run's seed.
    """

    population: Population
    local: LocalTraining
    adapt: bool = False
    seed: int = 0

    @cached_property
    def values(self) -> ClientValues | None:
        """How one number a client is found; ``None`` if it is not."""
        people = self.population
        if people.own_rows is not None:
            return OwnRows(people)
        one_task_of_classes = people.dataset.kinds == ("classes",)
        return ByClass(people) if one_task_of_classes else None

    def __call__(
        self,
        model: nn.Module,
        training: TrainingState,
        *,
        sampled: Sequence[Sequence[int]],
        last: bool,
    ) -> dict[str, Any]:
        """Measure.

        :param model: The global model.
        :param training: Where training stands.
        :param sampled: The clients of every round so far.
        :param last: Whether this is the last round: models of the clients' own that have to see the
            whole test set, one by one, are measured only then.
        :return: ``examples`` (test samples); under ``tasks`` a
            :class:`~fedaccord.metrics.TaskSummary`; where clients have values, under ``clients``
            the global model on all clients, and under ``also`` other models and other clients.
        :raises ValueError: If a model answers with NaN.
        """
        people, moment = self.population, moment_after(training.round)
        dataset = people.dataset
        with own_settings():  # so that the number of threads does not show in the last digits
            whole = evaluate(
                model,
                people.tests,
                num_classes=people.num_classes,
                score=score_for(dataset.kinds),
            )
            measured: dict[str, Any] = {
                "examples": whole.num_examples,
                "tasks": task_summary(
                    whole,
                    tasks=dataset.tasks,
                    moment=moment,
                    population=people.tests_are,
                    target_scales=dataset.metadata.get("target_scale"),
                ),
            }
            if self.values is None:
                return measured
            everyone = self.values.of_model(model, whole)
            groups = people.groups(sampled)
            measured["clients"] = everyone.block(groups[ALL], moment=moment)
            # a group of those who train has its values there already
            also = [
                everyone.block(ids, moment=moment, population=name, detail=name == HELD_OUT)
                for name, ids in groups.items()
                if name != ALL and everyone.any_of(ids)
            ]
            if everyone.loss is not None:
                also.append(everyone.loss.block(groups[ALL], moment=moment))
            measured["also"] = also + self._own_models(training, moment, last=last)
        return measured

    def _own_models(
        self, training: TrainingState, moment: str, *, last: bool
    ) -> list[dict[str, Any]]:
        """The models that clients have beside the global one."""
        assert self.values is not None
        people, found = self.population, []
        federation = people.federation
        kept = any(PERSONAL in state for state in training.client_states.values())
        if kept and (last or self.values.cheap):
            scores = self.values.of_models(personal_models(federation, training))
            ids = tuple(range(people.num_seen))
            found.append(scores.block(ids, model="personal", moment=moment))
        if self.adapt and last:
            models = after_local_steps(people.everyone, training, self.local, seed=self.seed)
            scores = self.values.of_models(models)
            after = moment_after(training.round, local_steps="after")
            found += [
                scores.block(ids, moment=after, population=name)
                for name, ids in people.groups(()).items()
                if scores.any_of(ids)
            ]
        return found
