"""What a plan shows, what its mechanism reads back, and that every mechanism is known."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import tacit.erm
from tacit.erm import (
    Balanced,
    ExponentialInABall,
    L2Ball,
    Mechanism,
    Objective,
    Plan,
    Problem,
    PublicCandidates,
    QuantileOnALine,
)
from tacit.erm.losses import AbsoluteLoss, LogisticLoss, SquaredLoss
from tacit.erm.minimization import CANDIDATES, KINDS, MECHANISMS
from tacit.erm.plan import Settings
from tacit.privacy import Budget
from tacit.privacy.guarantee import Guarantee
from tacit.queries.session import composed
from tacit.records import Bounds
from tacit.saving.codec import PARTS

BOUNDS = Bounds(label_range=(-1.0, 1.0), n_records=5000)


def below(kind: type[Any]) -> set[type[Any]]:
    return {kind}.union(*map(below, kind.__subclasses__()))


def own(kind: type[Any]) -> set[type[Any]]:
    for module in pkgutil.iter_modules(tacit.erm.__path__):
        importlib.import_module(f"{tacit.erm.__name__}.{module.name}")
    found = {k for k in below(kind) if k.__module__.startswith("tacit.")}
    return {k for k in found if not inspect.isabstract(k)}


def test_every_mechanism_of_the_package_is_in_the_table() -> None:
    # Balanced is one of the others, around which classes are counted.
    assert own(Mechanism) == {*KINDS.values(), Balanced}
    assert {word: PARTS[word] for word in KINDS} == KINDS
    assert set(MECHANISMS) == {kind.name for kind in KINDS.values() if kind.is_named}
    assert "noisy_sgd" in set(MECHANISMS) - set(CANDIDATES)


def by_name(name: str, delta: float) -> Plan:
    mechanism = MECHANISMS[name]
    loss = SquaredLoss(1.0, 1.0) if mechanism.uses_moments else LogisticLoss()
    return mechanism.plan(Problem(Objective(loss, BOUNDS), 3), Budget(1.0, delta))


def on_a_line() -> Plan:
    problem = Problem(Objective(AbsoluteLoss(), BOUNDS), 1)
    return QuantileOnALine(0.0, 1.0).plan(problem, Budget(1.0))


def of_candidates() -> Plan:
    problem = Problem(Objective(LogisticLoss(), BOUNDS), 3)
    return PublicCandidates(np.eye(3)).plan(problem, Budget(1.0))


def in_a_ball() -> Plan:
    problem = Problem(Objective(LogisticLoss(), BOUNDS, feasible=L2Ball(2.0)), 3)
    return ExponentialInABall().plan(problem, Budget(1.0))


PLANS: dict[str, Callable[[], Plan]] = {
    **{name: partial(by_name, name, 1e-6) for name in MECHANISMS},
    "objective_perturbation, pure": partial(by_name, "objective_perturbation", 0.0),
    "output_perturbation, pure": partial(by_name, "output_perturbation", 0.0),
    "on a line": on_a_line,
    "of candidates": of_candidates,
    "in a ball": in_a_ball,
}


@cache
def planned(name: str) -> Plan:
    return PLANS[name]()


@pytest.fixture(params=PLANS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return planned(request.param)


def test_settings_are_read_back_as_they_were_meant(plan: Plan) -> None:
    kinds = own(Settings) - {Settings}
    fitting = [k for k in kinds if set(inspect.signature(k).parameters) == set(plan.settings)]
    assert fitting
    for kind in fitting:
        # a file of an earlier version holds whole numbers as floats
        for shown in (plan.settings, {name: float(v) for name, v in plan.settings.items()}):
            again = kind.of(replace(plan, settings=shown)).shown()
            assert again == plan.settings
            assert {n: type(v) for n, v in again.items()} == {
                n: type(v) for n, v in plan.settings.items()
            }


def test_a_plan_keeps_its_budget(plan: Plan) -> None:
    epsilon, delta = plan.budget.epsilon, plan.budget.delta
    slots = composed(plan.mechanism.slots(plan))
    for event in (plan.event, slots):
        assert Guarantee(event).epsilon(delta) <= epsilon * (1 + 1e-9)


def test_a_plan_from_a_file_reads_the_same(plan: Plan) -> None:
    stored = replace(plan, settings={name: float(v) for name, v in plan.settings.items()})
    assert str(stored) == str(plan)
    for norm in (None, 2.0):
        assert stored.mechanism.noise_error(stored, norm) == plan.mechanism.noise_error(plan, norm)
    words = [p.mechanism.noise_in_words(p, str) for p in (stored, plan)]
    assert words[0] == words[1]
    assert words[0].endswith(".")


def test_every_settings_class_is_of_some_plan() -> None:
    names = {frozenset(plan.settings) for plan in map(planned, PLANS)}
    used = {frozenset(inspect.signature(k).parameters) for k in own(Settings) - {Settings}}
    assert used == names
