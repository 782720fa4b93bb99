"""q-FedAvg: powers of losses, limits, q-FedSGD."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from common import make_cohort, quadratic_federation
from fedaccord import Cohort, LocalSGD, MalformedReplyError, QFedAvg, simulate

ROWS = [[1.0, 0.0], [0.0, 2.0]]


def cohort(losses: list[float], rates: list[float] | None = None, scale: float = 1.0) -> Cohort:
    rows = scale * torch.tensor(ROWS, dtype=torch.float64)
    return make_cohort(rows, loss=losses, client_lr=rates or [0.5, 0.5])


def step(q: float, *args: object, **options: object) -> torch.Tensor:
    return QFedAvg(q).aggregate(None, cohort(*args, **options)).step


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_two_clients_by_hand():
    # L = 2, g = (2, 0), (0, 4); F = 1, 4, q = 1: weighted g (2, 0) + (0, 16),
    # h = |g|^2 + L F = 4 + 2 and 16 + 8
    assert_close(step(1.0, [1.0, 4.0]), vector(2 / 30, 16 / 30), rtol=1e-9, atol=0)


def test_each_client_has_its_own_rate():
    # rates 1 and .5: g = (1, 0), (0, 4); h = 1 + 1 and 16 + 2 * 4
    assert_close(step(1.0, [1.0, 4.0], [1.0, 0.5]), vector(1 / 26, 16 / 26), rtol=1e-9, atol=0)


@pytest.mark.parametrize("q", [0.0, 1e-9])
def test_without_q_it_is_the_plain_mean(q: float):
    assert_close(step(q, [1.0, 4.0]), vector(0.5, 1.0), rtol=1e-6, atol=0)


def test_a_large_q_goes_with_the_worst_client_alone():
    moved = step(200.0, [1.0, 2.0])
    assert moved[1] > 0
    assert moved[0] / moved[1] < 1e-50  # 2^-200


def test_a_large_q_improves_the_worst_client_most():
    # minimax on a line: losses w^2 / 2 (twice) and (w - 1)^2 / 2, largest loss least at 1/2
    rule, w, centres = QFedAvg(8.0), torch.zeros(1).double(), torch.tensor([[0.0], [0.0], [1.0]])
    for t in range(500):
        losses = (w - centres).square().sum(1) / 2
        updates = 0.5 * (centres - w)
        cohort = make_cohort(updates, loss=losses.tolist(), client_lr=[0.5] * 3, round=t)
        w = w + rule.aggregate(None, cohort).step
    # sum F^9 / 9 is stationary where 2 w^17 = (1 - w)^17
    assert w.item() == pytest.approx(1 / (1 + 2 ** (1 / 17)), abs=1e-6)


@pytest.mark.parametrize("losses", [[1e300, 2e300], [1e-300, 3.0], [0.0, 1e-12]])
@pytest.mark.parametrize("q", [0.1, 1.0, 15.0, 400.0])
def test_no_power_overflows(losses: list[float], q: float):
    assert torch.isfinite(step(q, losses)).all()


def test_zero_losses_count_as_the_constant():
    rule = QFedAvg(0.5, constant=0.25)
    # F = .25 for both, q = 1/2: F^q = .5, F^(q-1) = 2, L = 2: h = |g|^2 + 1 = 5 and 17
    moved = rule.aggregate(None, cohort([0.0, 0.0])).step
    assert_close(moved, vector(0.5 * 2 / 22, 0.5 * 4 / 22))


def test_a_negative_loss_is_refused_by_name():
    with pytest.raises(MalformedReplyError, match="`loss` of client 1 is -2.0"):
        step(1.0, [1.0, -2.0])


def test_one_full_batch_step_makes_it_q_fedsgd():
    # the pseudo-gradient is then the gradient -c of |w - c|^2 / 2 at 0, over all the data
    federation = quadratic_federation([[[2.0, 0.0], [4.0, 0.0]], [[0.0, 1.0]]])
    local = LocalSGD(lr=0.1, batch_size=1000, steps=1)
    (result,) = simulate(QFedAvg(1.0), federation, rounds=1, local=local)
    # F = (4 + 16) / 4 = 5 and 1/2; g = -(3, 0), -(0, 1); h = |g|^2 + 10 F = 9 + 50, 1 + 5
    assert_close(result.training.params, vector(15 / 65, 0.5 / 65), rtol=1e-8, atol=0)


def test_duplicated_clients_change_nothing():
    once = cohort([1.0, 4.0])
    twice = make_cohort(ROWS * 2, loss=[1.0, 4.0] * 2, client_lr=[0.5] * 4)
    for q in (0.0, 1.0, 3.0):
        moved = (QFedAvg(q).aggregate(None, c).step for c in (once, twice))
        assert_close(*moved)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"q": -0.1}, "`q` must be at least 0"),
        ({"q": math.inf}, "`q` must be at least 0 and finite"),
        ({"q": 1.0, "constant": 0.0}, "`constant` must be positive"),
        ({"q": 1.0, "server_lr": -1.0}, "`server_lr` must be positive"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, float], message: str):
    with pytest.raises(ValueError, match=message):
        QFedAvg(**options)
