"""Facts about personal models and about models after local steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from fedaccord import FedAvg, Federation, LocalSGD, TrainingState, simulate, start
from fedaccord.data import ArrayData
from fedaccord.errors import ClientFailedError
from fedaccord.metrics import after_local_steps, evaluate_clients, personal_models


def data(size: int, *, seed: int = 0) -> ArrayData:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 4, generator=source)
    return ArrayData.of(x, torch.randint(0, 3, (size,), generator=source))


CLIENTS = [data(12, seed=1), data(0), data(7, seed=2)]
TESTS = [data(20, seed=3), data(5, seed=4), data(9, seed=5)]


def losses(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    return functional.cross_entropy(model(batch[0]), batch[1]).reshape(1)


def normed() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))


def federation(model=lambda: nn.Linear(4, 3), **options: object) -> Federation:
    return Federation(model, losses, CLIENTS, **options)


def begun(parties: Federation) -> TrainingState:
    return start(FedAvg(), parties)


def parameters(parties: Federation, pairs) -> dict[int, Tensor | None]:
    flatten = parties.spec.layout.flatten
    return {client: None if model is None else flatten(model) for client, model in pairs}


# --- personal models


def test_a_personal_model_has_the_kept_parameters():
    parties = federation()
    kept = torch.arange(15.0)
    training = replace(begun(parties), client_states={2: {"personal": kept}})
    found = parameters(parties, personal_models(parties, training))
    assert list(found) == [0, 1, 2]
    assert torch.equal(found[2], kept)


def test_a_client_that_kept_none_has_no_model():
    parties = federation()
    training = replace(begun(parties), client_states={2: {"other": torch.zeros(15)}})
    found = parameters(parties, personal_models(parties, training))
    assert found == {0: None, 1: None, 2: None}
    scores = evaluate_clients(
        personal_models(
            parties, replace(training, client_states={0: {"personal": torch.ones(15)}})
        ),
        TESTS,
        num_classes=3,
    )
    assert scores.missing == (1, 2)


def test_on_request_it_has_the_global_one():
    parties = federation()
    training = begun(parties)
    found = parameters(parties, personal_models(parties, training, clients=[1], missing="global"))
    assert list(found) == [1]
    assert torch.equal(found[1], training.params)


def test_each_personal_model_is_a_module_of_its_own():
    parties = federation()
    training = replace(
        begun(parties),
        client_states={0: {"own": torch.zeros(15)}, 2: {"own": torch.ones(15)}},
    )
    models = dict(personal_models(parties, training, key="own", clients=[0, 2]))
    assert parties.spec.layout.flatten(models[0]).eq(0).all()
    assert not models[0].training


@pytest.mark.parametrize("missing", ["none", "global"])
def test_a_client_that_keeps_its_buffers_is_measured_with_them(missing):
    parties = federation(normed, buffers="local")
    training = begun(parties)
    training = replace(
        training,
        client_states={0: {"personal": training.params}} if missing == "none" else {},
        client_buffers={0: {"0.running_mean": torch.full((4,), 5.0)}},
    )
    ((_, model),) = personal_models(parties, training, clients=[0], missing=missing)
    assert model[0].running_mean.tolist() == [5.0] * 4
    assert model[0].running_var.tolist() == [1.0] * 4  # the global model's


def test_what_a_client_kept_must_fit_the_model():
    parties = federation()
    training = replace(begun(parties), client_states={2: {"personal": torch.zeros(3)}})
    with pytest.raises(ValueError, match=r"'personal' of client 2 must be \(15,\).* Got \(3,\)"):
        list(personal_models(parties, training))


def test_wrong_arguments_are_named_at_the_call():
    parties = federation()
    with pytest.raises(ValueError, match="`missing` must be 'none' or 'global'. Got 'zero'"):
        personal_models(parties, begun(parties), missing="zero")
    for make in (
        lambda: personal_models(parties, begun(parties), clients=[3]),
        lambda: after_local_steps(parties, begun(parties), LocalSGD(), clients=[-1]),
    ):
        with pytest.raises(ValueError, match=r"`clients` must be in \[0, 3\)"):
            make()


# --- after local steps


def test_one_step_on_all_examples_is_a_gradient_step():
    parties = federation()
    training = replace(begun(parties), round=2)
    local = LocalSGD(lr=0.5, batch_size=100, lr_decay=0.5)
    found = parameters(parties, after_local_steps(parties, training, local, clients=[2]))
    model = parties.module(training)
    losses(model, CLIENTS[2].tensors).backward()
    gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
    expected = training.params - 0.5 * 0.5**2 * gradient  # the rate of the round about to run
    assert_close(found[2], expected, rtol=1e-6, atol=1e-7)


def test_a_client_without_samples_cannot_train():
    parties = federation()
    found = parameters(parties, after_local_steps(parties, begun(parties), LocalSGD()))
    assert found[1] is None
    assert found[0] is not None


def test_statistics_trained_on_the_way_belong_to_the_model():
    parties = federation(normed)
    ((_, model),) = after_local_steps(
        parties, begun(parties), LocalSGD(batch_size=100), clients=[0]
    )
    mean = CLIENTS[0].inputs.mean(0)
    assert_close(model[0].running_mean, 0.1 * mean)  # momentum .1 from zero
    assert not model.training


def test_local_steps_start_from_the_buffers_a_client_keeps():
    parties = federation(normed, buffers="local")
    kept = {0: {"0.running_mean": torch.full((4,), 5.0)}}
    training = replace(begun(parties), client_buffers=kept)
    ((_, model),) = after_local_steps(parties, training, LocalSGD(batch_size=100), clients=[0])
    assert_close(model[0].running_mean, 0.9 * 5.0 + 0.1 * CLIENTS[0].inputs.mean(0))


def test_a_run_that_is_measured_is_the_run_that_is_not():
    parties = federation(normed)
    local = LocalSGD(batch_size=4)
    generator_before = torch.get_rng_state()

    def run(*, measured: bool) -> Tensor:
        for result in simulate(FedAvg(), parties, rounds=3, local=local):
            if measured:
                evaluate_clients(after_local_steps(parties, result.training, local), TESTS)
        return result.training.params

    assert torch.equal(run(measured=True), run(measured=False))
    assert torch.equal(torch.get_rng_state(), generator_before)


def test_the_training_state_is_left_as_it_is():
    parties = federation(normed, buffers="local")
    training = replace(begun(parties), client_states={0: {"kept": torch.ones(2)}})
    params = training.params.clone()
    buffers = {name: value.clone() for name, value in training.buffers.items()}
    list(after_local_steps(parties, training, LocalSGD()))
    assert torch.equal(training.params, params)
    assert all(torch.equal(training.buffers[name], value) for name, value in buffers.items())
    assert torch.equal(training.client_states[0]["kept"], torch.ones(2))


def test_a_clients_steps_depend_on_the_seed_and_on_nobody_else():
    parties = federation()
    training, local = begun(parties), LocalSGD(batch_size=2)

    def steps(**options: object) -> Tensor:
        return parameters(parties, after_local_steps(parties, training, local, **options))[2]

    assert torch.equal(steps(clients=[2]), steps())
    assert not torch.equal(steps(seed=1), steps())


def test_they_are_not_the_steps_of_the_next_round():
    parties = federation()
    training, local = begun(parties), LocalSGD(batch_size=2)
    (result,) = simulate(
        FedAvg(), Federation(parties.model, losses, CLIENTS[:1]), rounds=1, local=local
    )
    found = parameters(parties, after_local_steps(parties, training, local, clients=[0]))
    assert not torch.allclose(found[0], result.training.params)


def test_a_client_that_fails_is_named():
    class Broken:
        def __len__(self) -> int:
            return 3

        def batch(self, index: Tensor) -> tuple[Tensor, ...]:
            raise OSError("disk gone")

    parties = Federation(lambda: nn.Linear(4, 3), losses, [CLIENTS[0], Broken()])
    with pytest.raises(ClientFailedError, match="Client 1 failed .* OSError: disk gone"):
        list(after_local_steps(parties, begun(parties), LocalSGD()))
