"""Every estimator and mechanism, replayed without one person who has many extreme records."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tacit.erm.minimization as engine_module
import tacit.queries.gradient as gradient_module
import tacit.queries.session as session_module
from tacit.erm import NoisyGradient
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.noise import Entry, SensitivityViolation, recording
from tacit.privacy import Relation
from tacit.records import MemoryRecords
from tacit.records import grouped as person_sums_module
from tacit.records.grouped import PeopleInMemory
from tacit.records.privacy_unit import People
from tacit.registry import MODELS, Example
from tacit.testing import replay
from tests.declared import PROBLEMS, made, with_slow
from tests.test_replay_everything import CASES, DELTA, KNOWN, LOGISTIC, SCORES

MANY = 40
Records = tuple[Any, Any, Any]


def with_unit(estimator: Any, records: Records) -> Any:
    rows, labels, unit = records
    told = {} if labels is None else {"y": labels}
    return clone(estimator).fit(rows, unit=unit, **told)


def neighbours(example: Example, extreme: float) -> tuple[Records, Records]:
    """Return records of people with one to three each, and the same with a person of many more.

    The person's records stand among the others', first of all places.
    """
    n = len(example.rows)
    unit = np.array([f"p{place}" for place in np.arange(n) % (n // 2)], dtype=object)
    fewer = (example.rows.copy(), example.labels, unit)
    at = np.linspace(0, n, MANY, endpoint=False).astype(int)
    heavy = np.tile([extreme, 0.3 * extreme, -extreme], (MANY, 1))
    labels = example.labels
    if labels is not None:
        labels = np.insert(labels, at, example.odd[0])
    return fewer, (np.insert(example.rows, at, heavy, axis=0), labels, np.insert(unit, at, "zoe"))


def replayed(estimator: Any, data: Records, neighbour: Records) -> int:
    return replay(lambda records: with_unit(estimator, records), data, neighbour)


CENTRAL = [spec for spec in MODELS if Relation.ADD_REMOVE in spec.relations]
BY_PERSON = sorted(
    name
    for name in KNOWN[Relation.ADD_REMOVE] & set(CASES)
    if CASES[name].spec in CENTRAL and not name.endswith("-plain")
)


@pytest.mark.parametrize("name", with_slow(BY_PERSON))
@pytest.mark.parametrize("extreme", [1e6, pytest.param(0.2, marks=pytest.mark.slow)])
def test_a_person_more_or_less(name: str, extreme: float) -> None:
    case = CASES[name]
    estimator = case.estimator(Relation.ADD_REMOVE)
    fewer, more = neighbours(case.example, extreme)
    assert replayed(estimator, fewer, more) >= 1
    assert replayed(estimator, more, fewer) >= 1


WEIGHTED = [
    ("logistic-binary", {"max_weight": 2.0}),
    ("logistic-binary", {"max_weight": 2.0, "class_weight": {True: 8.0}}),
    ("logistic-binary", {"class_weight": "balanced"}),
    ("logistic-three", {"max_weight": 2.0, "class_weight": "balanced"}),
    ("linear-number", {"max_weight": 2.0}),
    ("poisson-count", {"max_weight": 2.0}),
    ("svc-binary", {"max_weight": 2.0, "class_weight": "balanced"}),
]


@pytest.mark.parametrize(("name", "told"), WEIGHTED, ids=str)
@pytest.mark.parametrize(
    "mechanism",
    [
        *("objective_perturbation", NoisyGradient(n_steps=3)),
        pytest.param("output_perturbation", marks=pytest.mark.slow),
    ],
)
def test_a_person_with_weights(name: str, told: dict[str, Any], mechanism: Any) -> None:
    """Of whom forty records weigh beyond what is declared, and one of them nothing that counts."""
    spec, example = PROBLEMS[name]
    estimator = made(spec, example, delta=DELTA, mechanism=mechanism, **told)
    fewer, more = (
        (*records, _weights(records[2]) if "max_weight" in told else None)
        for records in neighbours(example, 1e6)
    )

    def fit(records: Any) -> Any:
        rows, labels, unit, weights = records
        return clone(estimator).fit(rows, labels, weights, unit)

    assert replay(fit, fewer, more) >= 1
    assert replay(fit, more, fewer) >= 1


def _weights(unit: Any) -> Any:
    own = np.linspace(0.0, 3.0, len(unit))
    own[unit != "zoe"] = np.linspace(0.0, 3.0, int(np.sum(unit != "zoe")))
    own[unit == "zoe"] = 1e9
    own[np.flatnonzero(unit == "zoe")[:1]] = np.nan
    return own


@pytest.mark.parametrize("mechanism", ["objective_perturbation", NoisyGradient(n_steps=3)])
@pytest.mark.parametrize("name", ["logistic-binary", "poisson-count", "mean-ball", "median-middle"])
def test_standard_errors_of_people(name: str, mechanism: Any) -> None:
    spec, example = PROBLEMS[name]
    estimator = made(spec, example, delta=DELTA, mechanism=mechanism, inference=0.2)
    fewer, more = neighbours(example, 1e6)
    assert replayed(estimator, fewer, more) >= 3
    assert replayed(estimator, more, fewer) >= 3


@pytest.mark.parametrize("inference", [0.0, 0.2])
def test_weights_or_errors_of_all_records_are_caught(
    inference: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that forgot that only one record of each person may be used.

    A session refuses such records; if it forgot as well, the replay sees it.
    """
    monkeypatch.setattr(engine_module, "_one_each", lambda records: records)
    told = {} if inference else {"class_weight": {True: 8.0}}
    estimator = LogisticRegression(**SCORES, inference=inference, **told)
    with pytest.raises(ValueError, match="OneRecordEach"):
        with_unit(estimator, MORE)
    monkeypatch.setattr(session_module, "check_unit", lambda records, facts: None)
    caught(estimator.set_params(mechanism="objective_perturbation", regularization=1e4))
    if not inference:
        caught(estimator.set_params(mechanism=NoisyGradient(n_steps=3), regularization=None))


@pytest.mark.parametrize("nobody", [None, float("nan"), [1], 2**60], ids=str)
@pytest.mark.parametrize("name", ["logistic-binary-noisy_gradient", "mean-ball-its_own"])
def test_records_of_nobody_move_nothing(name: str, nobody: Any) -> None:
    case = CASES[name]
    fewer, more = neighbours(case.example, 1e6)
    unit = np.empty(len(more[2]), dtype=object)
    unit[:] = [nobody if who == "zoe" else who for who in more[2]]
    firsts = []
    for records in ((*more[:2], unit), fewer):
        with recording() as tape:
            with_unit(case.estimator(Relation.ADD_REMOVE), records)
        entries = (entry for entry in tape.entries if isinstance(entry, Entry))
        firsts.append(next(entries).bounded.value)  # of the count, before any noise was added
    assert firsts[0] == firsts[1]


def test_every_central_estimator_takes_a_unit() -> None:
    for spec in CENTRAL:
        assert "unit" in inspect.signature(spec.model.fit).parameters, spec.word
        assert any(CASES[name].spec is spec for name in BY_PERSON), spec.word


# A test of the tests: what each mutant leaves out must be seen.
DESCENT = LogisticRegression(**SCORES, mechanism=NoisyGradient(n_steps=3))
TILTED = LogisticRegression(**SCORES, mechanism="objective_perturbation", regularization=1e4)
FEWER, MORE = neighbours(LOGISTIC[1], 1e6)


def caught(estimator: Any) -> None:
    with pytest.raises(SensitivityViolation):
        replayed(estimator, FEWER, MORE)


def test_a_sum_that_is_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_sums_module, "_factors", lambda norms, _: np.ones(len(norms)))
    monkeypatch.setattr(person_sums_module, "_shares", lambda sizes: np.ones(len(sizes)))
    monkeypatch.setattr(gradient_module, "clipped_rows", lambda vectors, _: vectors)
    caught(DESCENT)


def test_a_sum_that_is_shared_out_but_not_clipped_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def shared(_: Any, sizes: Any) -> Any:
        return np.minimum(1.0, person_sums_module.MOST_COUNTED / sizes)

    monkeypatch.setattr(person_sums_module, "_factors", shared)
    monkeypatch.setattr(gradient_module, "clipped_rows", lambda vectors, _: vectors)
    caught(DESCENT)


def test_a_count_of_all_records_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeopleInMemory, "counted", PeopleInMemory.count)
    caught(DESCENT)


def test_a_unit_ignored_in_sums_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeopleInMemory, "_block", MemoryRecords._block)
    caught(DESCENT)


def test_a_unit_ignored_in_the_choice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PeopleInMemory, "one_each", lambda self: MemoryRecords(self.rows, self._labels, self.bounds)
    )
    caught(TILTED)


@pytest.mark.parametrize("name", ["mean-ball-its_own", "linear-number-sufficient_statistics"])
def test_a_choice_that_depends_on_others_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the number of people, as words in the order of the table would be."""
    original = People.one_each

    def by_turns(self: People) -> Any:
        return original(People(self.owner, self.words + np.uint64(len(self.words))))

    case = CASES[name]
    fewer, more = neighbours(case.example, 1e6)
    # people whose two records could not differ more
    fewer[0][: len(fewer[0]) // 2], fewer[0][len(fewer[0]) // 2 :] = 1.0, -1.0
    more[0][more[2] != "zoe"] = fewer[0]
    estimator = case.estimator(Relation.ADD_REMOVE)
    assert replayed(estimator, fewer, more) >= 1
    monkeypatch.setattr(People, "one_each", by_turns)
    with pytest.raises(SensitivityViolation):
        replayed(estimator, fewer, more)


def test_a_record_kept_from_values_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one nearest to everybody's middle: another person moves that, and so the choice."""

    def by_value(self: PeopleInMemory) -> MemoryRecords:
        away = np.abs(self.rows @ np.ones(3) - np.median(self.rows @ np.ones(3)))
        kept = [
            start + int(np.argmin(away[start : start + size]))
            for start, size in zip(self._starts, self._sizes, strict=True)
        ]
        assert self._labels is not None
        return MemoryRecords(self.rows[kept], self._labels[kept], self.bounds)

    monkeypatch.setattr(PeopleInMemory, "one_each", by_value)
    rows = np.repeat([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], 30, axis=0)
    labels, unit = np.repeat([2.0, -2.0], 30), np.tile(np.arange(30), 2)
    more = (
        np.vstack([rows, np.full((61, 3), -5.0)]),
        np.append(labels, np.zeros(61)),
        np.append(unit, np.full(61, 99)),
    )
    estimator = LinearRegression(
        1.0, DELTA, label_range=(-3.0, 3.0), row_norm=2.0, mechanism="sufficient_statistics"
    )
    with pytest.raises(SensitivityViolation):
        replayed(estimator, (rows, labels, unit), more)
