"""An experiment made ready to run; whatever a user can get wrong is found here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .. import data
from ..calibration import calibrate
from ..clients import ClientAlgorithm, ClientResult
from ..executors import ClientFailure, Executor, ModelFactory, Threads, serial
from ..federation import Federation, build
from ..models import losses_for
from ..rule import Rule
from ..simulation import check
from ._evaluation import Evaluator
from ._experiment import Experiment
from ._population import Population


@dataclass(frozen=True, eq=False)
class Setup:
    """What an experiment's description stands for.

    :param experiment: The description.
    :param dataset: The data.
    :param partition: Their split over all clients.
    :param holdout: What clients keep back, and which do not train.
    :param federation: Those who train.
    :param evaluator: What is measured.
    """

    experiment: Experiment
    dataset: data.Dataset
    partition: data.Partition
    holdout: data.Holdout
    federation: Federation
    evaluator: Evaluator

    @property
    def clients_a_round(self) -> int:
        """How many clients are asked in each round.

        :raises ValueError: If there are fewer.
        """
        try:
            return self.experiment.sampler.size(len(self.federation.clients))
        except ValueError as error:
            raise ValueError(f"Clients a round: {error}") from error

    @property
    def executor(self) -> Executor:
        """Who trains the clients."""
        return serial if self.experiment.workers == 1 else Threads(self.experiment.workers)

    def calibrate(self, tick: Callable[[], None]) -> Experiment:
        """Find the reference that the rule lacks.

        :param tick: Called after every round of calibration.
        :return: The experiment with the reference filled in.
        """
        settings = self.experiment.calibration
        assert settings is not None

        def ticking(
            algorithm: ClientAlgorithm, jobs: Any, model: ModelFactory
        ) -> list[ClientResult | ClientFailure]:
            results = self.executor(algorithm, jobs, model)
            tick()
            return results

        reference = calibrate(
            self.federation,
            local=self.experiment.local,
            sampler=self.experiment.sampler,
            rounds=settings.rounds,
            margin=settings.margin,
            seeds=(self.experiment.seed,),
            executor=ticking,
            policy=self.experiment.policy,
        )
        return self.experiment.calibrated(reference)


def set_up(experiment: Experiment) -> Setup:
    """Read the data, split them, and check that everything fits together.

    :raises ValueError: If something does not; the message says what to change.
    :raises FedAccordError: If the data cannot be read, or clients will not report what the rule
        needs.
    """
    dataset = data.load(experiment.dataset, experiment.data_dir)
    partition = experiment.partition.split(dataset)
    _check_device(experiment.device)
    holdout = experiment.holdout.of(partition, dataset)
    federation = Federation(
        model=experiment.model.factory(dataset),
        losses=losses_for(dataset.kinds),
        clients=dataset.clients(holdout.train.take(holdout.seen)),
        num_tasks=dataset.num_tasks,
        device=experiment.device,
    )
    evaluator = Evaluator(
        Population(dataset, partition, holdout, federation, experiment.evaluate_on),
        experiment.local,
        adapt=experiment.after_local_steps,
        seed=experiment.seed,
    )
    setup = Setup(experiment, dataset, partition, holdout, federation, evaluator)
    setup.clients_a_round  # noqa: B018 - raises if there are fewer clients
    _check_model(setup)
    rule = rule_of(setup)
    check(rule, experiment.local)
    rule.init(federation.spec)
    return setup


def rule_of(setup: Setup) -> Rule[Any]:
    """The rule, with a stand-in for a reference that is still to be found."""
    return setup.experiment.rule.with_reference((1.0,) * setup.dataset.num_tasks).build()


def _check_device(name: str) -> None:
    try:
        torch.zeros(1, device=name).item()  # some devices have shapes only, and no numbers
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"`device` must be one that PyTorch has here. Got {name!r}.") from error


def _check_model(setup: Setup) -> None:
    """Send two samples through the model, as training will."""
    name, dataset = setup.experiment.model.name, setup.dataset
    try:
        model = build(setup.federation.model, 0).eval()
        losses = setup.federation.losses(model, dataset.train.batch(torch.arange(2)))
        fits = tuple(losses.shape) == (dataset.num_tasks,)
    except ValueError as error:
        raise ValueError(f"Model `{name}`: {error}") from error
    except (RuntimeError, TypeError, IndexError, AttributeError):
        fits = False
    if not fits:
        shape = list(dataset.input_shape)
        raise ValueError(
            f"Model `{name}` does not fit dataset `{dataset.name}` with inputs of shape {shape} "
            f"and {dataset.num_tasks} task{'s' * (dataset.num_tasks > 1)}. Choose another model."
        )
