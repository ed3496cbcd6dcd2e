import dataclasses
import json

import numpy as np
import pytest

from tacit.local.protocol import Agreement
from tacit.local.sanitizers import GaussianNoise, HalfSphere, PrivUnit, SphereNoise
from tacit.local.sanitizers.additive import NoNoise
from tacit.local.subgradients import Absolute, Distance, Hinge, Huber, Logistic, SumOfDistances
from tacit.privacy import Relation

BASE = Agreement(Huber(1.0), SphereNoise(2.0, n_features=4, norm=2.0), 1.0, 0.25, "one")
OTHERS = [
    dataclasses.replace(BASE, loss=Huber(1.5)),
    dataclasses.replace(BASE, loss=Absolute()),
    dataclasses.replace(BASE, sanitizer=SphereNoise(2.1, n_features=4, norm=2.0)),
    dataclasses.replace(BASE, sanitizer=SphereNoise(2.0, n_features=5, norm=2.0)),
    dataclasses.replace(BASE, sanitizer=SphereNoise(2.0, n_features=4, norm=2.1)),
    dataclasses.replace(BASE, sanitizer=HalfSphere(2.0, n_features=4, norm=2.0)),
    dataclasses.replace(BASE, row_norm=1.1),
    dataclasses.replace(BASE, intercept=0.5),
    dataclasses.replace(BASE, intercept=None),
    dataclasses.replace(BASE, name="two"),
]


def test_the_task_stands_for_every_fact():
    tasks = {agreed.task for agreed in [BASE, *OTHERS]}
    assert len(tasks) == 1 + len(OTHERS)
    assert {len(task) for task in tasks} == {16}


def test_the_task_is_the_same_on_every_machine():
    assert BASE.to_json() == (
        '{"format":"tacit-agreement","intercept":0.25,"loss":{"kind":"huber","width":1.0},'
        '"name":"one","row_norm":1.0,"sanitizer":{"epsilon":2.0,"kind":"sphere_noise",'
        '"n_features":4,"norm":2.0,"version":1},"version":1}'
    )
    assert BASE.task.hex() == "9297eb2b490e3611975a84094a1522f1"
    as_int = dataclasses.replace(BASE, row_norm=1, loss=Huber(1))
    assert as_int.task == BASE.task


@pytest.mark.parametrize("agreed", [BASE, *OTHERS])
def test_json_comes_back(agreed):
    back = Agreement.from_json(agreed.to_json())
    assert back == agreed
    assert back.task == agreed.task


@pytest.mark.parametrize(
    "loss", [Logistic(), Hinge(), Absolute(), Huber(0.5), Distance(), SumOfDistances()]
)
def test_every_loss_travels(loss):
    agreed = Agreement(loss, PrivUnit(1.0, n_features=3, norm=2.0))
    assert Agreement.from_json(agreed.to_json()).loss == loss


@pytest.mark.parametrize("d", [1, 2, 5, 50, 300])
@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_steps_always_fit(d, epsilon):
    for sanitizer in (
        SphereNoise(epsilon, d),
        HalfSphere(epsilon, d),
        PrivUnit(epsilon, d),
        GaussianNoise(epsilon, 1e-6, d),
    ):
        agreed = Agreement(Logistic(), sanitizer)
        half = 2 ** (8 * agreed.step_bytes - 1)
        # Nothing possible is left out, on any axis or on the diagonal.
        for direction in (np.eye(d)[0], np.eye(d)[-1], np.ones(d)):
            for factor in (1.0, 1.01, 1.5, 2.0, 4.0, 100.0):
                assert not sanitizer.is_possible((direction * half * factor).astype(np.int64))
        if agreed.step_bytes > 2:
            # Fewer bytes would not do: some possible step is beyond them.
            smaller = 2 ** (4 * agreed.step_bytes - 1)
            reach = [2**k for k in range(62) if 2**k >= smaller]
            axis = np.eye(d, dtype=np.int64)[0]
            assert any(sanitizer.is_possible(axis * k) for k in reach)
        steps = np.rint(sanitizer.sanitize_batch(np.zeros((200, d))).value / agreed.spacing)
        assert np.abs(steps).max() < half


def test_sizes():
    assert Agreement(Logistic(), PrivUnit(1.0, 50)).report_size == 55 + 4 * 50
    assert Agreement(Logistic(), GaussianNoise(1.0, 1e-6, 50)).report_size == 55 + 2 * 50
    assert Agreement(Logistic(), PrivUnit(1.0, 50)).question_size == 38 + 8 * 50


def test_privacy_is_that_of_one_report():
    assert BASE.privacy.epsilon(0.0) == 2.0
    assert BASE.privacy.relation is Relation.REPLACE
    assert any("answers once" in line for line in BASE.privacy.assumptions)
    gaussian = Agreement(Logistic(), GaussianNoise(1.0, 1e-6, 3)).privacy
    assert gaussian.target_delta == 1e-6
    assert gaussian.epsilon(1e-6) <= 1.0


def test_the_intercept_is_counted():
    assert (BASE.n_features, BASE.n_columns) == (4, 3)
    assert BASE.total_norm == pytest.approx(np.sqrt(1.0625))
    with pytest.raises(ValueError, match=r"norm=1\.03"):
        Agreement(Logistic(), SphereNoise(1.0, 4), 1.0, intercept=0.25)
    Agreement(Logistic(), SphereNoise(1.0, 4, norm=np.hypot(1.0, 0.25)), 1.0, intercept=0.25)
    with pytest.raises(ValueError, match="intercept alone"):
        Agreement(Logistic(), SphereNoise(1.0, 1, norm=2.0), intercept=0.25)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"loss": "logistic"}, TypeError, "loss"),
        ({"sanitizer": "sphere"}, TypeError, "sanitizer"),
        ({"sanitizer": NoNoise(n_features=4, norm=2.0)}, ValueError, "has no guarantee"),
        ({"row_norm": 0.0}, ValueError, "row_norm"),
        ({"row_norm": np.nan}, ValueError, "row_norm"),
        ({"row_norm": 2.0**201}, ValueError, "row_norm"),
        ({"intercept": -1.0}, ValueError, "intercept"),
        ({"name": 3}, TypeError, "name"),
        ({"loss": SumOfDistances(), "sanitizer": SphereNoise(1.0, 4)}, ValueError, "norm=2.0"),
    ],
)
def test_what_cannot_be_agreed_on(arguments, error, match):
    with pytest.raises(error, match=match):
        dataclasses.replace(BASE, **arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "else"},
        {"version": 2},
        {"loss": {"kind": "logistic", "width": 1.0}},
        {"loss": {"kind": "squared", "width": 0.0}},
        {"loss": None},
        {"sanitizer": {"kind": "no_noise", "version": 1, "n_features": 4, "norm": 2.0}},
        {"sanitizer": None},
        {"row_norm": "1"},
        {"row_norm": 10**400},
        {"name": None},
    ],
)
def test_texts_that_are_no_agreement(change):
    record = json.loads(BASE.to_json()) | change
    with pytest.raises(ValueError):
        Agreement.from_json(json.dumps(record))
    del record[next(iter(change))]
    with pytest.raises(ValueError):
        Agreement.from_json(json.dumps(record))
