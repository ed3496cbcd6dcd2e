"""What a training does, and what it refuses."""

from __future__ import annotations

import math
import traceback
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm
from torch import nn

from tacit.deep import (
    AdaptiveClip,
    AutomaticClip,
    CannotClip,
    FlatClip,
    Moment,
    PerLayerClip,
    Progress,
    PublicData,
    PublicEvaluation,
    decayed_late,
)
from tacit.deep.clipping.book_keeping import BookKeeper
from tacit.noise import seeded_source
from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Guarantee,
    Relation,
    Repeated,
    SampledGaussian,
)
from tests.deep.helpers import Gradients, network, table, trainer

INFINITE = Budget(math.inf)


@pytest.mark.parametrize(
    "clip",
    [
        FlatClip(1.0),
        AdaptiveClip(1.0),
        pytest.param(PerLayerClip(1.0), marks=pytest.mark.slow),
        pytest.param(AutomaticClip(1.0), marks=pytest.mark.slow),
    ],
)
def test_it_learns(clip: Any) -> None:
    X, y = table(2000)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    told = {"clip": clip, "n_records": 2000, "batch_size": 400, "n_steps": 60}
    made = trainer(
        model,
        optimizer=optimizer,
        budget=Budget(4.0, 1e-5),
        schedule=decayed_late,
        average_last=0.2,
        **told,
    )
    made.fit(X, y)
    assert made.evaluate(PublicData(X, y)) > 0.85
    assert 3.9 < made.privacy_.epsilon(1e-5) <= 4.0
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_without_noise_a_step_is_the_clipped_mean_over_the_expected_batch() -> None:
    """Divided by a public number: not by how many records there are, or were drawn."""
    X, y = table(40)
    model = network()
    gradients = Gradients(model)
    made = trainer(
        model, optimizer=gradients, budget=INFINITE, n_records=80, batch_size=80, n_steps=1
    )
    made.fit(X, y)  # every record is drawn: 40 of the 80 that were announced
    keeper = BookKeeper(model, made.loss)
    whole = keeper.sums(torch.from_numpy(X), torch.from_numpy(y), FlatClip(0.5)).value.numpy()
    np.testing.assert_allclose(gradients.seen[0], whole / 80, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("clip", [FlatClip(0.5), AdaptiveClip(0.5, count_noise=0.2)])
def test_an_empty_batch_releases_noise_of_the_planned_size(clip: Any) -> None:
    model = nn.Linear(3, 25_000)  # 100,000 draws a step: 1.1 of the scale has a p below 1e-40
    gradients = Gradients(model)
    X, y = np.zeros((0, 3), np.float32), np.zeros(0, np.int64)
    made = trainer(model, optimizer=gradients, clip=clip, n_steps=2, n_records=100, batch_size=50)
    made.fit(X, y)
    z = made.plan_.settings["noise_multiplier"]
    noise = np.concatenate(gradients.seen) * 50
    if isinstance(clip, AdaptiveClip):
        noise = gradients.seen[0] * 50  # the clip has not moved yet
        z = clip.noise_of_sum(z, 50)
    standard = noise / (z * 0.5 * (1 + 2**-10))
    assert kstest(standard, norm.cdf).pvalue > 1e-9
    for wrong in (0.9, 1.1):
        assert kstest(standard / wrong, norm.cdf).pvalue < 1e-9


def test_budgets_both_ways() -> None:
    X, y = table()
    calibrated = trainer(n_steps=7).fit(X, y)
    assert calibrated.plan_.settings["n_steps"] == 7
    seen: list[int] = []
    spent = trainer(noise_multiplier=4.0, callbacks=[lambda moment: seen.append(moment.step)]).fit(
        X, y
    )
    last, step = seen[-1], SampledGaussian(4.0, 0.5)
    assert spent.privacy_.event == Repeated(step, last)
    assert Guarantee(Repeated(step, last)).epsilon(1e-5) <= 2.0
    assert Guarantee(Repeated(step, last + 1)).epsilon(1e-5) > 2.0
    with pytest.raises(ValueError, match="one step with noise_multiplier"):
        trainer(noise_multiplier=0.1).plan()


def test_an_accountant_is_charged_for_the_whole_plan_before_a_record_is_read() -> None:
    X, y = table()
    accountant = Accountant(Budget(5.0, 1e-4))

    def stop(moment: Moment) -> bool:
        return moment.step == 2

    made = trainer(accountant=accountant, callbacks=[stop]).fit(X, y)
    assert accountant.events == (made.plan_.event,)
    assert made.privacy_.event == made.plan_.event  # of all six steps, though two were made
    model, poor = network(), Accountant(Budget(0.1, 1e-4))
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(BudgetExceeded):
        trainer(model, accountant=poor).fit(X, y)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_seed_is_repeatable_and_not_private() -> None:
    X, y = table()
    weights = []
    for _ in range(2):
        model = network()
        made = trainer(model, source=seeded_source(1)).fit(X, y)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        assert made.privacy_.voided_by
    assert torch.equal(*weights)


def test_micro_batches_change_nothing() -> None:
    X, y = table()
    seen = []
    for size in (1, 7, 256):
        model = network()
        gradients = Gradients(model)
        trainer(model, optimizer=gradients, source=seeded_source(1), micro_batch=size).fit(X, y)
        seen.append(np.concatenate(gradients.seen))
    np.testing.assert_allclose(seen[0], seen[2], atol=1e-6)
    np.testing.assert_allclose(seen[1], seen[2], atol=1e-6)


def test_callbacks_see_epsilon_grow() -> None:
    X, y = table()
    epsilons: list[float] = []
    scores = PublicEvaluation(PublicData(X, y))
    line = Progress()
    made = trainer(callbacks=[lambda m: epsilons.append(m.epsilon()), scores, line])
    made.fit(X, y)
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] == pytest.approx(made.privacy_.epsilon(1e-5))
    assert [step for step, _ in scores.scores] == [2, 4, 6]
    assert line.epsilon == epsilons[-1]
    assert [cost.n_steps for cost in made.epsilon_by_epoch()] == [2, 4, 6]


REFUSED: dict[str, tuple[type[Exception], dict[str, Any]]] = {
    "n_steps or epochs": (ValueError, {"n_steps": 5, "epochs": 1.0}),
    "needs delta": (ValueError, {"budget": Budget(1.0)}),
    "'add_remove' only": (ValueError, {"budget": Budget(1.0, 1e-5, Relation.REPLACE)}),
    "batch_size": (ValueError, {"batch_size": 0}),
    "model must be": (TypeError, {"model": lambda x: x, "optimizer": Gradients(nn.Linear(1, 1))}),
    "reduction='none'": (CannotClip, {"loss": nn.CrossEntropyLoss()}),
    "does not have every": (
        ValueError,
        {"optimizer": torch.optim.SGD(nn.Linear(1, 1).parameters(), 1.0)},
    ),
    "Check the shapes": (CannotClip, {"model": nn.Linear(5, 2)}),
    "no number of steps": (ValueError, {"budget": INFINITE, "noise_multiplier": 1.0}),
    "count_noise": (ValueError, {"clip": AdaptiveClip(1.0, count_noise=1e-6)}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused(words: str) -> None:
    error, told = REFUSED[words]
    told = dict(told)
    with pytest.raises(error, match=words):
        trainer(told.pop("model", None) or network(), **told).fit(*table())


def test_private_records_are_not_evaluated_on() -> None:
    with pytest.raises(TypeError, match=r"PublicData\(X, y\)"):
        trainer().evaluate(table())
    with pytest.raises(TypeError, match="without a charge"):
        PublicEvaluation(table())


def test_a_number_for_a_clip_is_refused_with_what_to_pass() -> None:
    with pytest.raises(
        TypeError, match=r"clip must be .*, got float; pass FlatClip\(max_grad_norm\)"
    ):
        trainer(network(), clip=0.1)


class Listed:
    """A dataset of pairs; what is an exception is raised."""

    def __init__(self, *items: Any) -> None:
        self.items, self.reads = items, 0

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        self.reads += i == 0
        if isinstance(self.items[i], Exception):
            raise self.items[i]
        return self.items[i]


def test_a_guarantee_says_what_the_first_item_of_a_dataset_decides() -> None:
    dataset = Listed(*zip(*table(), strict=True))
    made = trainer(n_steps=1, noise_multiplier=6.0).fit(dataset)
    assert any("first item" in said for said in made.privacy_.assumptions)
    assert not trainer(n_steps=1, noise_multiplier=6.0).fit(*table()).privacy_.assumptions
    assert dataset.reads <= 5  # four times for its shape and its draws, once if it is drawn


def test_a_first_item_that_cannot_be_read_is_not_repeated() -> None:
    dataset = Listed(ValueError("Jane Doe, 471147"), (np.zeros(3, np.float32), 0))
    with pytest.raises(ValueError, match="first item") as caught:
        trainer().fit(dataset)
    assert "471147" not in "".join(traceback.format_exception(caught.value))


def test_a_second_fit_is_refused_and_not_charged() -> None:
    """It trained on, and repeated the guarantee of the first: four fits cost half as much again."""
    accountant = Accountant(Budget(10.0, 1e-4))
    model = network()
    made = trainer(model, accountant=accountant).fit(*table())
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(RuntimeError, match=r"has trained its model.*Nothing was charged"):
        made.fit(*table())
    assert len(accountant.events) == 1
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    # a new trainer of the same model is another release, and is charged as one
    trainer(model, accountant=accountant).fit(*table())
    assert len(accountant.events) == 2


def test_a_fit_that_broke_off_is_not_begun_again() -> None:
    def breaks(moment: Moment) -> None:
        raise KeyError("disk")

    made = trainer(callbacks=[breaks])
    with pytest.raises(KeyError):
        made.fit(*table())
    with pytest.raises(RuntimeError, match="has trained its model"):
        made.fit(*table())


def test_a_fit_that_was_refused_may_be_tried_again() -> None:
    made = trainer(accountant=Accountant(Budget(0.01, 1e-9)))
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            made.fit(*table())


class Refusing(nn.Module):
    """A model that does not take some records, and repeats them in what it raises."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__()
        self.linear, self.error = nn.Linear(3, 2), error

    def forward(self, x: Any) -> Any:
        if bool((x > 40).any()):
            raise self.error(f"cannot take {x[(x > 40).any(1)].tolist()}")
        return self.linear(x)


@pytest.mark.parametrize("error", [AssertionError, KeyError, ZeroDivisionError, TypeError, OSError])
def test_a_record_that_a_model_refuses_adds_zeros(error: type[Exception]) -> None:
    """Whatever it raises: an error after the charge would tell of it, and repeat it."""
    rows, labels = table()
    rows[7] = 60.0
    told: dict[str, Any] = {"budget": INFINITE, "n_steps": 1, "batch_size": 60}
    torch.manual_seed(2)
    model = Refusing(error)
    plain = nn.Linear(3, 2)
    plain.load_state_dict(model.linear.state_dict())
    trainer(model, **told).fit(rows, labels)
    trainer(plain, **told).fit(np.delete(rows, 7, 0), np.delete(labels, 7))
    assert torch.allclose(model.linear.weight, plain.weight, rtol=1e-5)


class Noticing(nn.Module):
    """A layer that keeps something of large records alone, which no probe draws."""

    def __init__(self, keep: Any) -> None:
        super().__init__()
        self.linear, self.keep = nn.Linear(3, 2), keep
        self.frozen = nn.Parameter(torch.zeros(3), requires_grad=False)
        self.register_buffer("largest", torch.zeros(3))

    def forward(self, x: Any) -> Any:
        if self.training and bool((x > 1e4).any()):
            with torch.no_grad():
                self.keep(self, x.amax(0))
        return self.linear(x)


def keep_in_place(model: Any, value: Any) -> None:
    model.largest.copy_(value)


def keep_anew(model: Any, value: Any) -> None:
    model.largest = value


def keep_in_data(model: Any, value: Any) -> None:
    model.largest.data.copy_(value)


def keep_another(model: Any, value: Any) -> None:
    model.register_buffer("other", value)


def keep_in_a_parameter(model: Any, value: Any) -> None:
    model.frozen.copy_(value)


def keep_in_weights(model: Any, value: Any) -> None:
    model.linear.bias.copy_(value[:2])


def keep_in_the_memory_of_weights(model: Any, value: Any) -> None:
    model.linear.bias.detach().numpy()[:] = value[:2]


def keep_in_the_memory_of_a_parameter(model: Any, value: Any) -> None:
    model.frozen.numpy()[:] = value


KEEPING = {
    "buffer 'largest'": (keep_in_place, keep_anew, keep_in_data),
    "buffer 'other'": (keep_another,),
    "parameter 'frozen'": (keep_in_a_parameter, keep_in_the_memory_of_a_parameter),
    "parameter 'linear.bias'": (keep_in_weights, keep_in_the_memory_of_weights),
}


@pytest.mark.parametrize(("words", "keep"), [(w, k) for w, ks in KEEPING.items() for k in ks])
def test_what_a_model_keeps_of_records_is_not_released(words: str, keep: Any) -> None:
    rows, labels = table()
    rows[7] = 2e4
    model = Noticing(keep)
    made = trainer(model, batch_size=60)
    with pytest.raises(CannotClip, match=words):
        made.fit(rows, labels)
    assert not hasattr(made, "privacy_")
    if "largest" in words:
        assert float(model.largest.abs().max()) < 1e4


def test_every_module_is_in_its_own_mode_again() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Sequential(nn.Linear(4, 2)))
    model[2].eval()
    trainer(model).fit(*table())
    assert [module.training for module in model] == [True, True, False]


def test_a_loss_that_leaves_a_record_out_leaves_it_out_alone() -> None:
    """A label of -100, by which texts are padded, stopped the training after the charge."""

    def without_padding(outputs: Any, y: Any) -> Any:
        counts = y != -100
        return nn.functional.cross_entropy(outputs[counts], y[counts], reduction="none")

    rows, labels = table()
    told: dict[str, Any] = {"budget": INFINITE, "n_steps": 1, "batch_size": 60}
    some, other = network(), network()
    odd = labels.copy()
    odd[7] = -100
    trainer(some, loss=without_padding, **told).fit(rows, odd)
    trainer(other, **told).fit(np.delete(rows, 7, 0), np.delete(labels, 7))
    for a, b in zip(some.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-5)


def test_a_record_that_uses_other_layers_does_not_stop_the_training() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            large = bool((x.abs() > 100).any())
            return self.last(self.first(self.first(x)) if large else self.first(x))

    rows, labels = table()
    rows[7] = 1000.0
    trainer(Branching(), batch_size=60).fit(rows, labels)


def test_callbacks_may_change_what_is_public() -> None:
    class Warm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.base = nn.Linear(3, 2), nn.Linear(3, 3)
            self.register_buffer("temperature", torch.ones(()))

        def forward(self, x: Any) -> Any:
            return self.linear(self.base(x)) / self.temperature

    def anneal(moment: Moment) -> None:
        model: Any = moment.model
        model.temperature.mul_(0.9)
        if moment.step == 3:
            model.base.requires_grad_(False)

    model = Warm()
    trainer(model, callbacks=[anneal]).fit(*table())
    assert float(model.temperature) == pytest.approx(0.9**6)


def test_a_buffer_that_is_written_and_stays_is_fine() -> None:
    def nothing(model: Any, value: Any) -> None:
        model.largest.add_(0.0)

    class Touching(Noticing):
        def forward(self, x: Any) -> Any:
            self.keep(self, x)
            return self.linear(x)

    trainer(Touching(nothing)).fit(*table())
