"""Everything a run depends on, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from ..clients import LocalSGD
from ..reply import Policy
from ..samplers import UniformSampler
from ._choices import HoldoutChoice, ModelChoice, PartitionChoice
from ._rule_choice import RuleChoice


@dataclass(frozen=True)
class Calibration:
    """How a reference that is not given is found before the run; see :func:`~fedaccord.calibrate`.

    It runs :class:`~fedaccord.Uniform` at ``server_lr`` 1 with the experiment's own local training,
    sampler and seed.

    :param rounds: Rounds of calibration, at least 1; they come on top of the experiment's.
    :param margin: Added to the largest reports, positive.
    :raises ValueError: If a value is out of range.
    """

    rounds: int = 20
    margin: float = 0.15

    def __post_init__(self) -> None:
        _at_least("calibration rounds", self.rounds, 1)
        if not 0 < self.margin < float("inf"):
            raise ValueError(f"`calibration margin` must be positive. Got {self.margin}.")


@dataclass(frozen=True)
class Experiment:
    """Everything that one run depends on.

    :param dataset: Name of the data.
    :param partition: How they are split over clients.
    :param model: What is trained.
    :param rule: What the server does.
    :param local: What the clients do.
    :param sampler: How many take part in a round.
    :param rounds: Number of rounds, at least 1.
    :param seed: Determines initialisation, sampling and minibatches; not the split.
    :param holdout: What clients keep back from training, and which clients do.
    :param evaluate_every: Evaluate after every so many rounds, and after the last; 0 means only
        after the last.
    :param evaluate_on: The ``"test"`` rows, or the ``"validation"`` rows that clients keep back, to
        tune by.
    :param after_local_steps: Whether every client's model after its own local training is measured
        too, after the last round.
    :param policy: What to do with unusable contributions and empty rounds.
    :param calibration: How a reference that the rule lacks is found. Chosen by itself where one
        is needed, ``None`` where not.
    :param workers: Threads that train clients side by side, at least 1; one for each core if not
        given. No result depends on it.
    :param device: Where models compute.
    :param data_dir: Folder of data that do not come with the package. What a run is does not depend
        on where they lie.
    :raises ValueError: If a value is out of range.
    """

    dataset: str
    partition: PartitionChoice
    model: ModelChoice
    rule: RuleChoice
    local: LocalSGD
    sampler: UniformSampler
    rounds: int
    seed: int = 0
    holdout: HoldoutChoice = field(default_factory=HoldoutChoice)
    evaluate_every: int = 10
    evaluate_on: Literal["test", "validation"] = "test"
    after_local_steps: bool = False
    policy: Policy = field(default_factory=Policy)
    calibration: Calibration | None = None
    workers: int | None = None
    device: str = "cpu"
    data_dir: str | None = None

    def __post_init__(self) -> None:
        _at_least("rounds", self.rounds, 1)
        _at_least("evaluate_every", self.evaluate_every, 0)
        if self.workers is not None:
            _at_least("workers", self.workers, 1)
        if self.evaluate_on == "validation" and not self.holdout.validation:
            raise ValueError(
                "`evaluate_on` can be 'validation' only if clients keep rows for it. Give "
                "`holdout.validation`, for example 0.1."
            )
        if self.rule.lacks_reference and self.calibration is None:
            object.__setattr__(self, "calibration", Calibration())

    def calibrated(self, reference: tuple[float, ...]) -> Experiment:
        """The same experiment with the reference that calibration found."""
        return replace(self, rule=self.rule.with_reference(reference))

    def evaluates_after(self, rounds: int) -> bool:
        """Whether the model is evaluated after so many rounds."""
        regular = self.evaluate_every > 0 and rounds % self.evaluate_every == 0
        return regular or rounds == self.rounds


def _at_least(name: str, value: int, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}. Got {value!r}.")
