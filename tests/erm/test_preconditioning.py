"""Steps in the coordinates of a private second moment: what they cost, bound and gain."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from tacit.erm import (
    CannotSolve,
    L2Ball,
    NoisyGradient,
    Objective,
    Problem,
    SecondMoment,
    choose_plan,
    minimize,
)
from tacit.erm.losses import HingeLoss, HuberLoss, LogisticLoss, SoftmaxLoss, SquaredLoss
from tacit.erm.mechanisms import noisy_gradient as descent_module
from tacit.linear_model import LogisticRegression
from tacit.noise import Entry, SensitivityViolation, recording
from tacit.noise.bounded import Bounded
from tacit.privacy import Budget, Gaussian, Relation
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.queries import GaussianNoise, Session, Slot, composed
from tacit.queries import noise as moment_module
from tacit.queries.noise import split_gaussian
from tacit.records import Bounds, ChunkedRecords, MemoryRecords, RecordSource
from tacit.records.block import Coordinates
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import people_of
from tacit.testing import replay

ADD, REPLACE, PERSON = Relation.ADD_REMOVE, Relation.REPLACE, Relation.ADD_REMOVE_PERSON
# so large that sixty records are enough to pay for a second moment
RICH = {relation: Budget(80.0, 1e-2, relation) for relation in Relation}
N_STEPS = 6
STEPS = NoisyGradient(N_STEPS, preconditioner=SecondMoment())
LOSSES = {
    "logistic": (LogisticLoss(), (-1.0, 1.0)),
    "softmax": (SoftmaxLoss(3), (0.0, 1.0, 2.0)),
    "huber": (HuberLoss(0.25), (-0.9, 0.3, 0.9)),
    "square": (SquaredLoss(), (-0.9, 0.3, 0.9)),
    "hinge": (HingeLoss(), (-1.0, 1.0)),
}


def table(labels, n=240, d=3):
    """A table whose second column nearly repeats the first."""
    rng = np.random.default_rng(0)
    rows = rng.normal(0, 0.5, (n, d))
    rows[:, 1] = rows[:, 0] + 0.02 * rows[:, 1]
    return rows, rng.choice(labels, n)


def bounds_for(loss, **more):
    known = {"label_range": (-1.0, 1.0)} if isinstance(loss, HuberLoss | SquaredLoss) else {}
    return Bounds(row_norm=1.5, intercept=0.375, **known, **more)


def fit(loss, relation, mechanism=STEPS):
    def run(data):
        rows, labels, *unit = data
        known = {"n_records": len(rows)} if relation is REPLACE else {}
        bounds = bounds_for(loss, **known)
        records: MemoryRecords
        if unit:
            records = PeopleInMemory(rows, labels, bounds, people_of(unit[0]))
        else:
            records = MemoryRecords(rows, labels, bounds)
        return minimize(records, Objective(loss, bounds), RICH[relation], mechanism)

    return run


def neighbours(labels, relation, odd=(0, 1)):
    """Data that differ in the record that is worst there: far out where no other record is."""
    rows, targets = table(labels)
    away = np.array([[1e6, -1e6, 0.0]])
    more = np.vstack([rows, away]), np.append(targets, labels[odd[0]])
    if relation is REPLACE:
        return more, (np.vstack([rows, -away[:, ::-1]]), np.append(targets, labels[odd[1]]))
    return more, (rows, targets)


def with_people(data, extra):
    rows, labels = data
    unit = [f"p{i % 70}" for i in range(len(rows) - extra)] + ["zoe"] * extra
    return rows, labels, np.array(unit, dtype=object)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
@pytest.mark.parametrize("name", LOSSES)
def test_a_record_moves_no_release_further_than_its_sensitivity(name, relation):
    loss, labels = LOSSES[name]
    one, other = neighbours(labels, relation)
    # count if it is private, moment, steps
    expected = N_STEPS + (1 if relation is REPLACE else 2)
    assert replay(fit(loss, relation), one, other) == expected
    assert replay(fit(loss, relation), other, one) == expected


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_a_person_moves_no_release_further_either(name):
    loss, labels = LOSSES[name]
    rows, targets = table(labels)
    heavy = np.tile([[1e6, -1e6, 0.0]], (30, 1))
    more = np.vstack([rows, heavy]), np.append(targets, np.full(30, labels[0]))
    one, other = with_people(more, 30), with_people((rows, targets), 0)
    assert replay(fit(loss, PERSON), one, other) == N_STEPS + 2
    assert replay(fit(loss, PERSON), other, one) == N_STEPS + 2


def scaled(factor):
    def forgetful(value, sensitivity, norm, relation):
        return Bounded(value, sensitivity / factor, norm, relation)

    return forgetful


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_moment_that_moves_further_is_caught(relation, monkeypatch):
    """By the root of two that is easily forgotten, and by it where nothing is replaced."""
    monkeypatch.setattr(moment_module, "Bounded", scaled(math.sqrt(2)))
    loss, labels = LOSSES["logistic"]
    with pytest.raises(SensitivityViolation):
        replay(fit(loss, relation), *neighbours(labels, relation))


def test_gradients_clipped_before_they_are_turned_are_caught(monkeypatch):
    """To the norm that holds after: where no other record is, a row keeps its length."""

    def early(self, coordinates, block, weights, bounds, clip):
        return self.gradient(block, weights, bounds, bounds.total_norm)

    monkeypatch.setattr(LogisticLoss, "gradient_clipped_in", early)
    loss, labels = LOSSES["logistic"]
    with pytest.raises(SensitivityViolation):
        replay(fit(loss, ADD), *neighbours(labels, ADD))


def test_lengths_of_rows_before_they_are_turned_are_caught(monkeypatch):
    """As if no row were longer there than they are on average."""
    monkeypatch.setattr(Coordinates, "lengths", lambda self, block: np.full(block.n_rows, 0.01))
    loss, labels = LOSSES["logistic"]
    with pytest.raises(SensitivityViolation):
        replay(fit(loss, ADD), *neighbours(labels, ADD))


def test_a_person_clipped_where_they_are_not_turned_is_caught(monkeypatch):
    monkeypatch.setattr(Coordinates, "squares", lambda self, inner, last, _: 1e-9 * last**2)
    loss, labels = LOSSES["logistic"]
    rows, targets = table(labels)
    more = np.vstack([rows, np.tile([[9.0, -9.0, 0.0]], (30, 1))]), np.append(targets, [1.0] * 30)
    with pytest.raises(SensitivityViolation):
        replay(fit(loss, PERSON), with_people(more, 30), with_people((rows, targets), 0))


def test_a_moment_that_is_not_paid_for_is_withheld(monkeypatch):
    """The steps are given what was the moment's, so that together they cost too much."""
    monkeypatch.setattr(
        descent_module.NoisyGradient,
        "_noise",
        lambda self, problem, budget, moment=None: split_gaussian(budget, {"steps": None}),
    )
    loss, labels = LOSSES["logistic"]
    with pytest.raises(RuntimeError, match="'everything' would release"):
        fit(loss, ADD)(table(labels))


def released(relation, share=0.09):
    """Return what a fit released: the noise multipliers, in order."""
    loss, labels = LOSSES["logistic"]
    mechanism = replace(STEPS, preconditioner=SecondMoment(share))
    with recording() as tape:
        result = fit(loss, relation, mechanism)(table(labels))
    events = [entry.event for entry in tape.entries if isinstance(entry, Entry)]
    return result, [e.noise_multiplier for e in events if isinstance(e, Gaussian)]


def test_the_whole_is_one_gaussian_of_the_budget():
    for share in (0.05, 0.4):
        result, multipliers = released(ADD, share)
        whole = gaussian_multiplier(RICH[ADD])
        assert result.plan.event == Gaussian(whole)
        assert multipliers[1] == pytest.approx(whole / math.sqrt(share))
        spent = sum(1 / z**2 for z in multipliers)
        assert spent <= 1 / whole**2
        assert spent == pytest.approx(1 / whole**2, rel=1e-9)


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_a_step_has_the_noise_it_says(relation):
    """Of rows of zeros gradients are zero, so that what is released is noise."""
    d, rows = 40, np.zeros((4_000, 40))
    bounds = Bounds(row_norm=1.5, n_records=4_000)
    records = MemoryRecords(rows, np.ones(4_000), bounds)
    mechanism = NoisyGradient(n_steps=300, preconditioner=SecondMoment())
    with recording() as tape:
        minimize(records, Objective(LogisticLoss(), bounds), RICH[relation], mechanism)
    moment, *steps = (entry for entry in tape.entries if isinstance(entry, Entry))
    assert len(steps) == 300
    found = np.array([np.asarray(step.value) for step in steps])
    # rows of zeros have the least length that is counted: lam0 / n
    two = math.sqrt(2) if relation is REPLACE else 1.0
    z = gaussian_multiplier(RICH[relation])
    lam0 = 2 * two * 1.5**2 * (1 + 1e-4) * z / 0.3 * math.sqrt(2 * d)
    clip = math.sqrt(lam0 / 4_000)
    # noise of T steps with 91 % of mu^2: z C sqrt(T / 0.91), C twice as much if one is replaced
    std = z * math.sqrt(300 / 0.91) * clip * (2 if relation is REPLACE else 1) * (1 + 1e-3)
    square = float(np.sum(found**2)) / std**2

    def p_value(total):
        return 2 * min(chi2.cdf(total, found.size), chi2.sf(total, found.size))

    assert p_value(square) > 1e-9
    assert p_value(0.9**2 * square) < 1e-9
    assert p_value(1.1**2 * square) < 1e-9
    assert np.asarray(moment.value).size == d * (d + 1) // 2


def preconditioner(rows, **known):
    bounds = Bounds(row_norm=1.5, n_records=len(rows), **known)
    problem = Problem(Objective(LogisticLoss(), bounds), rows.shape[1])
    records = MemoryRecords(rows, np.ones(len(rows)), bounds)
    moment, facts = SecondMoment(), problem.facts(ADD)
    slots = {"moment": Slot(GaussianNoise(moment.noise_multiplier(RICH[ADD])).event(facts))}
    session = Session(records, facts, composed(slots), slots)
    return moment.ask(session, "moment", problem, RICH[ADD], len(rows)), records


@pytest.mark.parametrize("intercept", [0.0, 0.375])
def test_coordinates_do_what_they_say(intercept):
    rows, _ = table((1.0,), n=20_000)
    frame, records = preconditioner(rows, intercept=intercept)
    matrix = frame.coordinates.matrix
    (points,) = records.sum(lambda block: (block.points().T @ block.points(),))
    there = np.linalg.eigvalsh(matrix @ points @ matrix)
    # no direction is longer than before, none curves more than was said, and rows are that long
    assert np.linalg.eigvalsh(matrix)[[0, -1]] == pytest.approx([frame.shrinks, 1.0], abs=0.2)
    assert there.max() <= 1.01 * frame.moment
    # noise of std s in each of d moments, s = lam0 / (2 sqrt(2 d))
    off = 8 * frame.moment / (2 * math.sqrt(2)) / len(rows)
    assert there.sum() / len(rows) == pytest.approx(frame.row_norm**2, abs=off)
    assert frame.row_norm < 0.3 * 1.5
    v = np.random.default_rng(1).normal(0, 1, len(matrix))
    rest = frame.without_constant(v, intercept)
    if intercept:  # what was taken off is a model that is the same for all rows
        np.testing.assert_allclose((matrix @ (v - rest))[:-1], 0.0, atol=1e-9)
    else:
        np.testing.assert_array_equal(rest, v)


def test_sources_and_forms_of_rows_agree():
    """Lengths noted once or worked out in each pass, dense or sparse: the same gradient."""
    from scipy.sparse import csr_array

    rows, labels = table((-1.0, 1.0))
    bounds = bounds_for(LogisticLoss())
    coordinates = Coordinates(np.diag([0.5, 0.1, 1.0, 0.7]))
    w = np.array([0.4, -0.2, 0.3, 0.1])
    dense = MemoryRecords(rows, labels, bounds)
    sources: list[RecordSource] = [
        dense,
        dense.measured(coordinates.lengths),
        MemoryRecords(csr_array(rows), labels, bounds),
        ChunkedRecords(
            lambda: iter([(rows[:100], labels[:100]), (rows[100:], labels[100:])]), 3, bounds
        ),
    ]

    def gradient(block):
        total = LogisticLoss().gradient_clipped_in(coordinates, block, w, bounds, 0.3)
        return (coordinates.of(total),)

    first, *others = (source.sum(gradient)[0] for source in sources)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-12)
    # by hand, record by record
    expected = np.zeros(4)
    for x, y in zip(rows, labels, strict=True):
        x = np.append(x * min(1.0, 1.5 / np.linalg.norm(x)), 0.375)
        g = coordinates.matrix @ (x * -y / (1 + math.exp(y * float(x @ w))))
        expected += g * min(1.0, 0.3 / np.linalg.norm(g))
    np.testing.assert_allclose(first, expected, rtol=1e-9)


def drawn(n, condition, d=20):
    rng = np.random.default_rng(0)
    root = np.geomspace(1.0, condition**-0.5, d)
    rows = rng.standard_normal((n, d)) * root / np.linalg.norm(root)
    scores = rows @ (np.linalg.norm(root) / root) * 2 / math.sqrt(d)
    return rows, rng.uniform(size=n) < 1 / (1 + np.exp(-scores))


def excess(mechanism, condition, n=50_000):
    rows, labels = drawn(2 * n, condition)
    known = {"row_norm": 1.5, "classes": [False, True]}
    losses = []
    for epsilon, how in ((1.0, mechanism), (math.inf, "auto")):
        model = LogisticRegression(epsilon, 1e-6, mechanism=how, **known)
        p = model.fit(rows[:n], labels[:n]).predict_proba(rows[n:])
        losses.append(-np.mean(np.log(np.where(labels[n:], p[:, 1], p[:, 0]))))
    return losses[0] - losses[1]


def test_it_pays_on_an_ill_conditioned_table():
    """Measured over many draws: 0.0044 beside 0.066 for plain steps at condition 10,000."""
    with_moment = excess(NoisyGradient(preconditioner=SecondMoment()), 1e4)
    assert with_moment < 0.3 * excess(NoisyGradient(), 1e4)


def test_too_few_records_leave_the_share_to_the_steps():
    loss, labels = LOSSES["logistic"]
    bounds = bounds_for(loss)
    rows, targets = table(labels, n=60)
    with recording() as tape:
        records = MemoryRecords(rows, targets, bounds)
        minimize(records, Objective(loss, bounds), Budget(0.1, 1e-6), STEPS)
    sizes = [np.asarray(e.value).size for e in tape.entries if isinstance(e, Entry)]
    assert sizes == [1, *[4] * N_STEPS, 1]  # count, steps, trace


@pytest.mark.parametrize(
    ("objective", "word"),
    [
        ({"feasible": L2Ball(1.0)}, "constraint"),
        ({}, "columns"),
    ],
)
def test_what_cannot_be_turned_is_refused_before_data_are_read(objective, word):
    n_features = 3 if objective else 5_000
    problem = Problem(Objective(LogisticLoss(), Bounds(), **objective), n_features)
    with pytest.raises(CannotSolve, match=word):
        STEPS.plan(problem, Budget(1.0, 1e-6))


def test_standard_errors_are_refused():
    model = LogisticRegression(1.0, 1e-6, classes=[0, 1], mechanism=STEPS, inference=0.1)
    with pytest.raises(CannotSolve, match="standard errors"):
        model.plan(3)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, math.nan])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(ValueError, match="share"):
        SecondMoment(share)


def test_auto_asks_where_records_pay_and_not_elsewhere():
    def chosen(n_records, **objective):
        bounds = Bounds(n_records=n_records)
        problem = Problem(Objective(HingeLoss(), bounds, **objective), 20)
        return choose_plan(problem, Budget(1.0, 1e-6)).mechanism

    assert chosen(1_000_000) == NoisyGradient(preconditioner=SecondMoment())
    assert chosen(1_000) == NoisyGradient()
    assert chosen(1_000_000, feasible=L2Ball(3.0)) == NoisyGradient()


def test_a_ridge_that_was_asked_for_is_on_the_weights():
    """With next to no noise the released weights are the ridge regression's own."""
    rows, _ = table((1.0,), n=4_000)
    labels = np.clip(rows @ [0.5, 0.1, -0.3], -1, 1)
    bounds = Bounds(row_norm=3.0, label_range=(-1.0, 1.0))
    objective = Objective(SquaredLoss(), bounds, 300.0)
    mechanism = NoisyGradient(n_steps=1_000, clip=30.0, preconditioner=SecondMoment())
    records = MemoryRecords(rows, labels, bounds)
    result = minimize(records, objective, Budget(1e6, 1e-2), mechanism)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    x = rows * np.minimum(1.0, 3.0 / norms)
    expected = np.linalg.solve(x.T @ x + 300.0 * np.eye(3), x.T @ labels)
    np.testing.assert_allclose(result.weights, expected, atol=0.02)
