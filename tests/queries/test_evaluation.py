"""One record moves what is counted by no more than is said, however odd it is."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.metrics.planning import bin_edges
from tacit.noise import Norm
from tacit.noise.summation import sum_sensitivity
from tacit.privacy import Relation
from tacit.queries import Facts, GaussianNoise, NoisySum, Sensitivity
from tacit.queries.base import plain_facts
from tacit.queries.evaluation import (
    Answered,
    CandidateMistakes,
    Cells,
    MistakeBalance,
    NumberSums,
    SeveralClassCells,
    SquaredResiduals,
    TwoClassCells,
    WrongAnswers,
)
from tacit.testing import check_query

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE
NAN, INF = math.nan, math.inf
EDGES = bin_edges(8)
ODD_LABELS = [None, NAN, INF, "text", 10**400, (1, 2), b"x", -1]

TWO = TwoClassCells(np.array([0, 1]), EDGES)
SEVERAL = SeveralClassCells(np.array(["a", "b", "c"]), EDGES)
NUMBERS = NumberSums(-3.0, 9.0)
RECORDS: dict[str, tuple[Cells, list[Any]]] = {
    "two": (
        TWO,
        [*itertools.product([0.0, 0.2, 0.5, 1.0, NAN], [0, 1]), *((0.3, y) for y in ODD_LABELS)],
    ),
    "several": (
        SEVERAL,
        [
            *itertools.product([(1.0, 0.0, 0.0), (0.2, 0.3, 0.5), (NAN, 0.5, 0.5)], "abc"),
            *(((0.1, 0.8, 0.1), y) for y in ODD_LABELS),
        ],
    ),
    "numbers": (
        NUMBERS,
        [
            *itertools.product([-3.0, 9.0, 1e300, -INF, INF, NAN], [-3.0, 9.0, 3.0, 1e9]),
            *((4.0, y) for y in ODD_LABELS),
        ],
    ),
}


def sums(cells: Cells, records: list[Any], relation: Relation) -> np.ndarray:
    labels = np.empty(len(records), dtype=object)
    labels[:] = [label for _, label in records]
    answers = np.array([answer for answer, _ in records], dtype=float)
    return cells.total(Answered(answers, labels), plain_facts(relation))


def stated(cells: Cells | SquaredResiduals, relation: Relation, norm: Norm = Norm.L2) -> float:
    """Return the sensitivity in a norm."""
    if not isinstance(cells, SquaredResiduals):
        cells = replace(cells, norm=norm)
    found = cells.sensitivity(plain_facts(relation))
    assert found.norm is norm
    return found.value


def furthest(cells: Cells, records: list[Any], relation: Relation, norm: Norm) -> float:
    """Return how far one record moves the sums, over all there are here."""
    cells, always = replace(cells, norm=norm), records[:2]
    each = [sums(cells, [*always, record], relation) for record in records]
    if relation is REPLACE:
        return max(norm.length(a - b) for a, b in itertools.combinations(each, 2))
    return max(norm.length(a - sums(cells, always, relation)) for a in each)


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("name", RECORDS)
def test_the_sensitivity_is_kept_and_reached(name: str, relation: Relation, norm: Norm) -> None:
    cells, records = RECORDS[name]
    far = stated(cells, relation, norm)
    moved = furthest(cells, records, relation, norm)
    assert moved <= far
    assert moved >= 0.999 * far  # so a smaller one would be wrong


def test_known_sensitivities() -> None:
    assert stated(TWO, ADD_REMOVE) == 1.0
    assert stated(TWO, REPLACE) == pytest.approx(math.sqrt(2))
    # three classes: shares of 1/2, 1 + 3/4
    assert stated(SEVERAL, ADD_REMOVE) == pytest.approx(math.sqrt(1.75))
    assert stated(NUMBERS, ADD_REMOVE) == pytest.approx(math.sqrt(5), rel=1e-5)
    assert stated(NUMBERS, REPLACE) == pytest.approx(math.sqrt(6), rel=1e-5)
    for relation in (ADD_REMOVE, REPLACE):
        mistakes = WrongAnswers(np.array([0, 1])).sensitivity(plain_facts(relation))
        assert (mistakes.value, mistakes.norm) == (1.0, Norm.L2)
        candidates = CandidateMistakes(2).sensitivity(plain_facts(relation))
        assert (candidates.value, candidates.norm) == (1.0, Norm.LINF)


class TwoCellsEach(TwoClassCells):
    """A mutant: a record counts in the bin beside its own, too."""

    def total(self, records: Any, facts: Facts) -> Any:
        beside = Answered(np.minimum(records.answers + 0.2, 1.0), records.labels)
        return super().total(records, facts) + super().total(beside, facts)


class OneUnderReplace(TwoClassCells):
    """A mutant: the sensitivity of ADD_REMOVE under REPLACE."""

    def sensitivity(self, facts: Facts) -> Sensitivity:
        return super().sensitivity(plain_facts(ADD_REMOVE))


@pytest.mark.parametrize(
    ("mutant", "relation"), [(TwoCellsEach, ADD_REMOVE), (OneUnderReplace, REPLACE)]
)
def test_mutants_are_caught(mutant: type[TwoClassCells], relation: Relation) -> None:
    cells = mutant(np.array([0, 1]), EDGES)
    assert furthest(cells, RECORDS["two"][1], relation, Norm.L2) > stated(cells, relation)
    with pytest.raises(AssertionError, match="moved by"):
        check_query(NoisySum(cells, GaussianNoise(1.0)), plain_facts(relation))


def test_counts_are_added_exactly() -> None:
    for n_classes in range(3, 40):
        cells = SeveralClassCells(np.arange(n_classes), EDGES)
        assert 0.25 <= n_classes * cells.share**2 <= 1.0
        assert math.frexp(cells.share)[0] == 0.5  # a power of two


def test_squares_move_by_one_at_most() -> None:
    labels, facts = np.array([-3.0, 9.0]), plain_facts(ADD_REMOVE)
    squares = SquaredResiduals(-3.0, 9.0)
    assert squares.total(Answered(np.array([9.0, -3.0]), labels), facts) == -2.0
    assert squares.total(Answered(labels, labels), facts) == 0.0
    assert 1.0 <= stated(squares, ADD_REMOVE) == stated(squares, REPLACE) <= 1.0 + 1e-5


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("n_classes", [3, 4, 5, 6, 7, 11])
def test_roots_are_rounded_up(n_classes: int, relation: Relation) -> None:
    cells = replace(SEVERAL, classes=np.arange(n_classes))
    moved = 1 if relation is ADD_REMOVE else 2
    square = moved * (1 + n_classes * Fraction(cells.share) ** 2)
    found = Fraction(stated(cells, relation))
    assert square < found**2 < square * (1 + Fraction(1, 2**50))
    assert Fraction(stated(TWO, relation)) ** 2 >= moved


@pytest.mark.parametrize(("norm", "longest", "apart"), [(Norm.L2, 5**0.5, 6**0.5), (Norm.L1, 5, 5)])
def test_both_rows_of_a_replacement_are_rounded(norm: Norm, longest: float, apart: float) -> None:
    rounding = stated(NUMBERS, ADD_REMOVE, norm) - longest
    assert rounding > longest * 1e-9
    far = stated(NUMBERS, REPLACE, norm)
    assert far == pytest.approx(apart + 2 * rounding, rel=1e-15)
    assert far >= apart + 2 * rounding


@pytest.mark.parametrize("low", [1e16, 1e16 + 2])
@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_a_range_whose_middle_is_no_double(low: float, norm: Norm) -> None:
    """The middle is rounded to an end, and the other end is two halves away: it counts as one."""
    cells = NumberSums(low, low + 2)
    records = [(answer, label) for answer in (low, low + 2) for label in (low, low + 2)]
    for record in records:
        assert np.abs(sums(replace(cells, norm=norm), [record], REPLACE)).max() <= 1.0
    assert furthest(cells, records, REPLACE, norm) <= stated(cells, REPLACE, norm)


@pytest.mark.parametrize(
    ("low", "high"), [(-1e308, 1e308), (0.0, 5e-324), (1.0, 1.0), (0.0, NAN), (-INF, 0.0)]
)
def test_ranges_of_which_no_share_is_a_number_are_refused(low: float, high: float) -> None:
    # before a record is seen: some labels would be no number there, and some would
    with pytest.raises(ValueError, match="change units"):
        NumberSums(low, high)
    with pytest.raises(ValueError, match="change units"):
        SquaredResiduals(low, high)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_halves_are_exact_and_other_mistakes_are_rounded(relation: Relation) -> None:
    facts, changed = plain_facts(relation), 1 if relation is ADD_REMOVE else 2
    whole, parts = MistakeBalance(True), MistakeBalance(False)
    assert whole.sensitivity(facts).value == changed / 2
    rounded = sum_sensitivity(0.5, 1, Norm.L2, relation)
    assert changed / 2 < parts.sensitivity(facts).value == rounded
    mistakes = np.array([0.3, 0.9, NAN])
    assert whole.total(mistakes, facts) == 0.5
    assert parts.total(mistakes, facts) == pytest.approx([0.7], abs=1e-6)


def test_the_model_of_fewer_mistakes_has_the_greater_utility() -> None:
    facts = plain_facts(ADD_REMOVE)
    utilities = CandidateMistakes(2).total([np.array([1.0, NAN, 0.25]), np.zeros(3)], facts)
    assert utilities.tolist() == [-2.25, 0.0]
