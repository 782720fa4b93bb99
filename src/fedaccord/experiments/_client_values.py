"""One number a client: on its own test rows, or from the accuracies of classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..metrics import (
    Evaluation,
    class_shares,
    client_accuracies,
    evaluate,
    evaluate_clients,
    fairness_summary,
    score_for,
    variance_parts,
)
from ._population import ALL, Population

BY_CLASS = "training share of each class x accuracy on that class over the whole test set"
OWN_ROWS = "on the client's own {rows} rows"

Models = Iterable[tuple[int, nn.Module | None]]


@dataclass(frozen=True, eq=False)
class Values:
    """One number for each client, by position, and what it is.

    :param values: float64 ``[N]``; NaN for a client without.
    :param quantity: ``"accuracy"``, ``"loss"`` or ``"concordance"``.
    :param measured: How it was measured.
    :param names: The clients' names.
    :param weights: ``[N]``, examples that count in a weighted mean.
    :param rows: ``[N]``, numbers of own rows; ``None`` where others' were used.
    :param errors: ``[N]``, standard errors of values on few rows.
    :param loss: The loss beside another quantity.
    """

    values: Tensor
    quantity: str
    measured: str
    names: tuple[Hashable, ...]
    weights: Tensor
    rows: Tensor | None = None
    errors: Tensor | None = None
    loss: Values | None = None

    def any_of(self, ids: Sequence[int]) -> bool:
        """Whether any of some clients has a value."""
        return not bool(self.values[list(ids)].isnan().all())

    def block(
        self,
        ids: Sequence[int],
        *,
        moment: str,
        model: str = "global",
        population: str = ALL,
        detail: bool = True,
    ) -> dict[str, Any]:
        """What a record says of some clients.

        :param ids: The clients' positions.
        :param detail: Whether to say it of each client too.
        :param moment: When it was measured.
        :param model: Which model.
        :param population: What the clients are called together.
        """
        chosen = list(ids)
        values = self.values[chosen]
        block: dict[str, Any] = {
            "summary": fairness_summary(
                values,
                model=model,
                moment=moment,
                population=population,
                higher_is_better=self.quantity != "loss",
                num_examples=self.weights[chosen],
            ),
            "quantity": self.quantity,
            "measured": self.measured,
            "clients": chosen,
        }
        if not detail:
            return block
        block["names"] = [self.names[position] for position in chosen]
        block["values"] = values
        if self.rows is not None:
            block["rows"] = self.rows[chosen]
        if self.errors is not None:
            block["standard_errors"] = self.errors[chosen]
        if self.quantity == "accuracy" and self.rows is not None and self._noisy(chosen):
            block["variance"] = variance_parts(values, self.rows[chosen])
        return block

    def _noisy(self, chosen: list[int]) -> bool:
        assert self.rows is not None
        here = (self.rows[chosen] >= 2) & ~self.values[chosen].isnan()
        return bool(here.any())


class ClientValues(ABC):
    """A way of finding one number a client."""

    cheap: bool
    """Whether a model of its own costs a client no pass over the whole test set."""

    @abstractmethod
    def of_model(self, model: nn.Module, whole: Evaluation) -> Values:
        """The values of one model for all clients.

        :param model: The model.
        :param whole: What it reaches on the whole test set.
        """

    @abstractmethod
    def of_models(self, models: Models) -> Values:
        """The values of a model each, by position."""


@dataclass(frozen=True, eq=False)
class OwnRows(ClientValues):
    """On each client's own rows: accuracy, mean over tasks; or loss; or concordance.

    :param population: Whose rows.
    """

    population: Population
    cheap = True

    def of_model(self, model: nn.Module, whole: Evaluation) -> Values:
        """The values of one model for all clients."""
        return self._values(model)

    def of_models(self, models: Models) -> Values:
        """The values of a model each, by position."""
        return self._values(models)

    def _values(self, models: nn.Module | Models) -> Values:
        people = self.population
        assert people.own_rows is not None
        scores = evaluate_clients(
            models,
            people.own_rows,
            num_classes=people.num_classes,
            score=score_for(people.dataset.kinds),
        )
        measured = OWN_ROWS.format(rows=people.rows)
        common: dict[str, Any] = {
            "names": people.names,
            "weights": scores.num_examples,
            "rows": scores.num_examples,
        }
        one = people.dataset.num_tasks == 1
        over = "" if one else ", mean over tasks"
        loss = Values(
            scores.losses.mean(1),
            "loss",
            f"mean loss {measured}{over}",
            errors=scores.loss_errors[:, 0] if one else None,
            **common,
        )
        if scores.accuracies is not None and scores.accuracy_errors is not None:
            return Values(
                scores.accuracies.mean(1),
                "accuracy",
                f"accuracy {measured}{over}",
                errors=scores.accuracy_errors[:, 0] if one else None,
                loss=loss,
                **common,
            )
        if scores.concordances is not None:
            return Values(
                scores.concordances,
                "concordance",
                f"Harrell's concordance index {measured}",
                **common,
            )
        return loss


@dataclass(frozen=True, eq=False)
class ByClass(ClientValues):
    """The accuracies of classes on the whole test set, weighted by each client's training shares.

    :param population: Whose shares.
    """

    population: Population
    cheap = False

    @cached_property
    def _shares(self) -> Tensor:
        people = self.population
        parts = people.partition.take(people.order)
        return class_shares(people.dataset.labels, parts, num_classes=people.dataset.num_classes[0])

    def of_model(self, model: nn.Module, whole: Evaluation) -> Values:
        """The values of one model for all clients."""
        return self._values(client_accuracies(whole.class_accuracies[0], self._shares))

    def of_models(self, models: Models) -> Values:
        """The values of a model each, by position: every one sees the whole test set."""
        people = self.population
        values = torch.full((len(people.order),), torch.nan, dtype=torch.float64)
        for position, model in models:
            if model is None:
                continue
            whole = evaluate(model, people.tests, num_classes=people.num_classes)
            shares = self._shares[position : position + 1]
            values[position] = client_accuracies(whole.class_accuracies[0], shares)[0]
        return self._values(values)

    def _values(self, values: Tensor) -> Values:
        people = self.population
        sizes = people.partition.take(people.order).sizes
        return Values(values, "accuracy", BY_CLASS, people.names, torch.tensor(sizes))
