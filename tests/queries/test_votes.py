"""Questions about teachers' votes: replayed on neighbours; wrong constants are caught."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.noise import Entry, Norm, SensitivityViolation, recording, seeded_source
from tacit.noise.gaussian import smooth_gaussian
from tacit.noise.selection import finite
from tacit.privacy import Gaussian, NoisyMajority, PureEpsilon, Relation, Repeated, SmoothGaussian
from tacit.queries import AtMost, Facts, GaussianNoise, NoisySum, Session, Slot
from tacit.queries.votes import (
    STEPS,
    GaussianWinners,
    GreatestCounts,
    LaplaceWinners,
    Leads,
    Majorities,
    PredictionSum,
    SharedVotes,
    Thresholds,
    Votes,
    count_votes,
)
from tacit.queries.votes_cost import (
    SeveralClasses,
    SmoothValue,
    TwoClasses,
    VotesCost,
    log_chance_of_upset,
    query_renyi,
    smooth_sensitivity,
)
from tacit.records import Bounds
from tacit.testing import check_query, replay

RELATIONS = [Relation.ADD_REMOVE, Relation.REPLACE, Relation.ADD_REMOVE_PERSON]
VOTES = Votes(5, 4, 3)
MASK = np.arange(15, dtype=np.uint64).reshape(5, 3) << np.uint64(60)
# Each question, and whose votes it is asked of.
QUERIES: list[tuple[Any, Any]] = [
    (GaussianWinners(VOTES, 2.0), VOTES),
    (GaussianWinners(VOTES, 2.0, n_charged=5, places=(4, 0, 1, 2, 3)), VOTES),
    (LaplaceWinners(replace(VOTES, norm=Norm.L1), 0.5), VOTES),
    (Majorities(Leads(5, 4, 0.3), 2.0), Leads(5, 4)),
    (Thresholds(GreatestCounts(5, 4, 3), 0.6, 2.0), VOTES),
    (SharedVotes(VOTES, 3.0, 2), VOTES),
    (SharedVotes(VOTES, 3.0, 2, MASK), VOTES),
    (NoisySum(PredictionSum(5, 4), GaussianNoise(2.0)), PredictionSum(5, 4)),
]
STATISTICS = (Votes, Leads, GreatestCounts, PredictionSum)


def facts_of(relation: Relation) -> Facts:
    return Facts(Bounds(), 1, relation)


def answered(query: Any, relation: Relation, teachers: Any, source: Any = None) -> Any:
    facts = facts_of(relation)
    slots = {"votes": Slot(query.event(facts))}
    session = Session(teachers, facts, query.event(facts), slots, source)
    return session.release(session.ask(query, "votes"))


def runner(query: Any, relation: Relation) -> Callable[[Any], Any]:
    return lambda teachers: answered(query, relation, teachers)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("query", "whose"), QUERIES, ids=lambda one: type(one).__name__)
def test_neighbours_are_replayed(
    query: Any, whose: Any, relation: Relation, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, run = list(whose.neighbours(facts_of(relation))), runner(query, relation)
    for one, other in pairs:
        assert replay(run, one, other) == replay(run, other, one) == 1
    # of half the sensitivity, somewhere a teacher moves more
    for statistic in STATISTICS:
        stated: Any = statistic.sensitivity_of
        monkeypatch.setattr(
            statistic, "sensitivity_of", lambda self, n, stated=stated: 0.49 * stated(self, n)
        )
    with pytest.raises(SensitivityViolation):
        [replay(run, *pair) for pair in pairs]


@pytest.mark.parametrize("wrong", [1.0, 1.4])
def test_a_teacher_moves_two_counts_and_not_one(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a sensitivity of 1, or somewhat less than sqrt(2), for each query."""
    monkeypatch.setattr(Votes, "sensitivity_of", lambda self, n: wrong * math.sqrt(n))
    run = runner(GaussianWinners(VOTES, 2.0), Relation.ADD_REMOVE)
    pairs = list(VOTES.neighbours(facts_of(Relation.ADD_REMOVE)))
    with pytest.raises(SensitivityViolation):
        [replay(run, *pair) for pair in pairs]


def test_votes_that_count_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutants: each vote is counted twice, or a teacher votes twice."""
    pairs = list(VOTES.neighbours(facts_of(Relation.ADD_REMOVE)))
    monkeypatch.setattr("tacit.queries.votes.count_votes", lambda *given: 2.0 * count_votes(*given))
    with pytest.raises(AssertionError, match="moved by"):
        check_query(NoisySum(VOTES, GaussianNoise(1.0)), facts_of(Relation.ADD_REMOVE))
    for query, _ in QUERIES[:3]:
        run = runner(query, Relation.ADD_REMOVE)
        with pytest.raises(SensitivityViolation):
            [replay(run, *pair) for pair in pairs]
    monkeypatch.undo()
    with pytest.raises(ValueError, match="5 teachers answered, but 4 were planned"):
        answered(QUERIES[0][0], Relation.ADD_REMOVE, [*pairs[0][0], pairs[0][0][0]])
    with pytest.raises(ValueError, match="3 teachers answered, but 4 were planned"):
        answered(QUERIES[0][0], Relation.ADD_REMOVE, pairs[0][0][:3])
    for wrong in (np.zeros(6, int), np.zeros(1, int), 0):
        with pytest.raises(ValueError, match="one answer for each query"):
            answered(QUERIES[0][0], Relation.ADD_REMOVE, [*pairs[0][0][:3], wrong])


def test_a_vote_for_no_class_is_one_vote() -> None:
    counts = count_votes([[-3, 7, 1], [0, 2, 1]], 3, 2, 3)
    np.testing.assert_array_equal(counts, [[2, 0, 0], [0, 0, 2], [0, 2, 0]])
    assert set(VOTES.contributors()) >= {count_votes}


def test_predictions_are_clipped_to_their_range() -> None:
    facts, teachers = facts_of(Relation.REPLACE), [[-5, 0, STEPS, 3 * STEPS], [7, 8, 9, 10]]
    total = PredictionSum(4, 2).total(teachers, facts)
    np.testing.assert_array_equal(total, [7, 8, STEPS + 9, STEPS + 10])


@pytest.mark.parametrize("relation", RELATIONS)
def test_prices(relation: Relation) -> None:
    facts, root = facts_of(relation), math.sqrt(2.0)
    for query, price in (
        (GaussianWinners(VOTES, 3.0), Repeated(Gaussian(3.0 / root, relation), 5)),
        (GaussianWinners(VOTES, 3.0, 2, (1,)), Repeated(Gaussian(3.0 / root, relation), 2)),
        (QUERIES[2][0], Repeated(PureEpsilon(1.0, relation), 5)),
        (QUERIES[3][0], Repeated(NoisyMajority(2.0, relation), 5)),
        (QUERIES[4][0], Repeated(Gaussian(2.0, relation), 5)),
        (QUERIES[6][0], Gaussian(3.0 / math.sqrt(10), relation)),
        (SmoothValue(COST, 4.0, 0.1, 1.5), SmoothGaussian(4.0, 0.1, 1.5, relation)),
    ):
        assert query.event(facts) == price
        with pytest.raises(ValueError, match="Poisson"):
            query.event(replace(facts, sampling_rate=0.5))
    with pytest.raises(ValueError, match="L1"):
        LaplaceWinners(VOTES, 0.5)


@pytest.mark.parametrize("n", range(1, 40))
def test_sensitivities_are_rounded_up(n: int) -> None:
    facts = facts_of(Relation.ADD_REMOVE)
    for statistic, squared in (
        (Votes(n, 4, 3), 2 * n),
        (Votes(n, 4, 3, Norm.L1), 4 * n**2),
        (Leads(n, 4), 4 * n),
        (GreatestCounts(n, 4, 3), n),
        (PredictionSum(n, 4), STEPS**2 * n),
    ):
        stated = Fraction(statistic.sensitivity(facts).value) ** 2
        assert squared <= stated <= squared * (1 + Fraction(1, 10**14))


def test_more_queries_than_were_paid_for_are_refused() -> None:
    """Before a vote is counted if the plan can tell, and else before anything leaves."""
    facts, teachers = facts_of(Relation.ADD_REMOVE), [np.zeros(5, int)] * 4
    paid = GaussianWinners(VOTES, 2.0, n_charged=2)
    with pytest.raises(ValueError, match="n_charged"):
        answered(replace(paid, places=(0, 1, 2)), Relation.ADD_REMOVE, teachers)
    thresholds: Any = QUERIES[4][0]

    def unread() -> Any:
        raise AssertionError("a teacher was asked")
        yield

    for query, more in (
        (paid, replace(paid, n_charged=3)),
        (paid, replace(paid, noise_std=1.9)),
        (thresholds, replace(thresholds, counts=GreatestCounts(6, 4, 3))),
    ):
        slots = {"votes": Slot(query.event(facts), AtMost())}
        session = Session(unread(), facts, query.event(facts), slots)
        with pytest.raises(RuntimeError, match="was paid for"):
            session.ask(more, "votes")
    # and no second time
    session = Session(teachers, facts, paid.event(facts), slots={"a": Slot(paid.event(facts))})
    held = session.hold(VOTES)
    session.ask(replace(paid, places=(3, 1)), "a", of=held)
    with pytest.raises(RuntimeError, match="was paid for"):
        session.ask(paid, "a", of=held)


def test_answers_are_of_the_votes() -> None:
    teachers = [np.array([0, 1, 1, 0, 1])] * 90 + [np.array([1, 0, 1, 0, 1])] * 10
    votes, leads = Votes(5, 100, 3), Leads(5, 100, 0.3)
    for query, expected in (
        (GaussianWinners(votes, 1.0), [0, 1, 1, 0, 1]),
        (GaussianWinners(votes, 1.0, 3, (3, 1)), [0, 1]),
        (LaplaceWinners(replace(votes, norm=Norm.L1), 2.0), [0, 1, 1, 0, 1]),
        (Majorities(leads, 1.0), [0, 1, 1, 0, 1]),
        (Majorities(replace(leads, cut=0.05), 0.5), [1, 1, 1, 0, 1]),
        (Majorities(replace(leads, cut=0.95), 0.5), [0, 0, 1, 0, 1]),
        (Thresholds(GreatestCounts(5, 100, 3), 0.95, 0.5), [0, 0, 1, 1, 1]),
    ):
        found = answered(query, Relation.REPLACE, teachers).value
        np.testing.assert_array_equal(found, expected)


def test_a_share_of_the_noise_and_a_mask() -> None:
    facts, teachers = facts_of(Relation.ADD_REMOVE), [np.arange(5) % 3] * 4
    plain, masked = SharedVotes(VOTES, 3.0, 2), SharedVotes(VOTES, 3.0, 2, MASK)
    with recording() as tape:
        one, other = (
            answered(query, Relation.ADD_REMOVE, teachers, seeded_source(3)).value
            for query in (plain, masked)
        )
    np.testing.assert_array_equal(one + MASK, other)
    entries = [entry for entry in tape.entries if isinstance(entry, Entry)]
    # the noise of one site, whatever is charged for it
    (price,) = {entry.event for entry in entries}
    assert price == plain.event(facts)
    assert isinstance(price, Gaussian)
    share = price.noise_multiplier * math.sqrt(10)
    assert 3.0 / math.sqrt(2) < share < 3.0 / math.sqrt(2) * (1 + 1e-11)
    assert plain.share_std == pytest.approx(share, rel=1e-14)
    whole = Fraction(VOTES.sensitivity(facts).value)
    for k in range(1, 40):
        tried = SharedVotes(VOTES, 0.1 * k, 2)
        event: Any = tried.event(facts)
        assert Fraction(event.noise_multiplier) * whole >= Fraction(tried.share_std)
    assert masked.event(facts) == masked.sum_event(facts) == Gaussian(3.0 / math.sqrt(10))
    noisy = one.view(np.int64) * plain.spacing(facts)
    counts = VOTES.total(teachers, facts)
    assert np.abs(noisy - counts).max() < 8 * plain.share_std
    np.testing.assert_array_equal(np.asarray(entries[0].value), noisy)


COST = VotesCost.tried()[0]


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_cost_is_replayed(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> None:
    query = SmoothValue(COST, 4.0, 0.1, 1.5)
    run, pairs = runner(query, relation), list(COST.neighbours(facts_of(relation)))
    for one, other in pairs:
        assert replay(run, one, other) == 1
    worst = TwoClasses.worst.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(TwoClasses, "worst", property(lambda self: 0.49 * worst(self)))
    with pytest.raises(SensitivityViolation):
        [replay(run, *pair) for pair in pairs]


def test_no_cost_moves_further_than_its_smooth_sensitivity() -> None:
    facts, b = facts_of(Relation.REPLACE), 0.2
    several = VotesCost(Votes(2, 12, 3), SeveralClasses(2.0, 3, 2.0))
    assert several.table.conditions_hold()
    for cost in (COST, several):
        greatest = 0.0
        for one, other in cost.neighbours(facts):
            moved = abs(cost.total(one, facts) - cost.total(other, facts))
            sizes = [cost.smooth_sensitivity(each, facts, b) for each in (one, other)]
            assert moved <= min(sizes) * (1 + 1e-9) + 1e-15
            assert max(sizes) <= math.exp(b) * min(sizes) * (1 + 1e-9)
            assert max(sizes) <= cost.sensitivity(facts).value
            greatest = max(greatest, moved / min(sizes))
        assert greatest > 0.5


def test_a_cost_gets_the_noise_of_its_own_smoothness(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, query, given = facts_of(Relation.REPLACE), SmoothValue(COST, 4.0, 0.1, 1.5), []

    def noticed(*numbers: Any) -> Any:
        given.append(numbers[:4])
        return smooth_gaussian(*numbers)

    monkeypatch.setattr("tacit.queries.votes_cost.smooth_gaussian", noticed)
    for teachers, _ in COST.neighbours(facts):
        answered(query, Relation.REPLACE, teachers)
        assert given.pop() == (
            COST.total(teachers, facts),
            smooth_sensitivity(COST.table, COST.votes.total(teachers, facts), 0.1),
            COST.sensitivity(facts).value,
            query.event(facts),
        )


def test_a_cost_without_its_conditions_says_nothing_of_votes() -> None:
    facts = facts_of(Relation.REPLACE)
    cost = VotesCost(Votes(2, 12, 10), SeveralClasses(20.0, 10, 25.0))
    assert not cost.table.conditions_hold()

    def unread() -> Any:
        raise AssertionError("a teacher was asked")
        yield

    assert cost.total(unread(), facts) == cost.smooth_sensitivity(unread(), facts, 0.1) == 0.0


def test_noise_functions_are_told_how_far_a_teacher_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant: less noise than the event says; the session withholds the answer."""
    honest = finite.gaussian_winners
    monkeypatch.setattr(
        "tacit.queries.votes.gaussian_winners",
        lambda votes, std, *more, **named: honest(votes, 0.9 * std, *more, **named),
    )
    with pytest.raises(RuntimeError, match="withheld"):
        answered(QUERIES[0][0], Relation.ADD_REMOVE, [np.zeros(5, int)] * 4)


# The cost of votes, worked out another way.


def theorem_6(log_q: float, s: float, a: float) -> float:
    """Return the divergence of a query, condition by condition as in the paper."""
    worst, q = a / s**2, math.exp(log_q)
    mu_2 = s * math.sqrt(-log_q)
    mu_1 = mu_2 + 1
    e_1, e_2 = mu_1 / s**2, mu_2 / s**2
    if mu_2 <= 1 or a > mu_1 or log_q + e_2 >= 0:
        return worst
    if log_q > (mu_2 - 1) * e_2 - mu_2 * math.log(mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1)):
        return worst
    log_1, log_2 = math.log1p(-q), e_1 - log_q / (mu_1 - 1)
    log_a = log_1 - math.log(-math.expm1((log_q + e_2) * (mu_2 - 1) / mu_2))
    one, two = log_1 + (a - 1) * log_a, log_q + (a - 1) * log_2
    return min(worst, float(np.logaddexp(one, two)) / (a - 1))


def test_theorem_6_holds_where_its_conditions_do_and_nowhere_else() -> None:
    log_q = np.concatenate([-np.geomspace(1e-3, 500.0, 400), [math.log(0.5)]])
    orders = np.array([1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0])
    cheaper = 0
    for s in (0.5, 1.0, 1.3, 2.0, 5.0, 20.0, 100.0):
        found = query_renyi(log_q, s, orders)
        expected = np.array([[theorem_6(q, s, a) for a in orders] for q in log_q])
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)
        cheaper += int(np.sum(found < orders / s**2))
    assert cheaper > 1000


def test_the_chance_of_upset_is_one_at_most() -> None:
    assert log_chance_of_upset([[5, 5, 5, 5]], 1.0).tolist() == [0.0]


@pytest.mark.parametrize("table", [SeveralClasses(2.0, 3, 2.0), SeveralClasses(40.0, 10, 20.0)])
def test_the_edge_is_where_votes_begin_to_cost_less(table: SeveralClasses) -> None:
    """To a billionth: below, the local sensitivity is 0."""
    at, below = table.cost(np.array([table.edge, table.edge - 1e-9]))
    assert at < table.worst == below


def test_where_all_votes_cost_the_same_nothing_moves() -> None:
    table = SeveralClasses(0.1, 3, 200.0)
    assert table.edge == math.inf
    assert table.conditions_hold()
    assert not table.local(np.linspace(0.0, 40.0, 9), 3).any()


class Rising(SeveralClasses):
    """A cost that rises a little with the place, by far more than rounding does."""

    def cost(self, places: Any) -> Any:
        return np.where(places < 1.0, 1.0, 0.5 + 1e-9 * (places > 20.0)) * self.worst


def test_a_cost_that_rises_is_noticed_however_small_it_is() -> None:
    for noise_std in (1.0, 1e3, 1e6):
        assert not Rising(noise_std, 3, 2.0).conditions_hold()


@pytest.mark.parametrize("cut", [-2.0, 0.0, 1.5])
def test_two_classes_by_hand(cut: float) -> None:
    n, s, a = 3, 0.8, 2.5
    table = TwoClasses(s, n, a, cut)
    t = [(2 * k - n - cut) / (math.sqrt(2.0) * s) for k in range(n + 1)]
    p = [(math.erfc(-x / math.sqrt(2)) / 2, math.erfc(x / math.sqrt(2)) / 2) for x in t]

    def renyi(one: tuple[float, ...], other: tuple[float, ...]) -> float:
        each = zip(one, other, strict=True)
        return math.log(sum(x**a * y ** (1 - a) for x, y in each)) / (a - 1)

    pair = [max(renyi(p[k], p[k + 1]), renyi(p[k + 1], p[k])) for k in range(n)]
    costs = [max(pair[max(k - 1, 0)], pair[min(k, n - 1)]) for k in range(n + 1)]
    np.testing.assert_allclose(table.costs, costs, rtol=1e-9)
    change = [abs(costs[k + 1] - costs[k]) for k in range(n)]
    for d in range(n + 1):
        met = [change[max(k - d - 1, 0) : k + d + 1] for k in range(n + 1)]
        found = table.local(np.arange(n + 1), d)
        np.testing.assert_allclose(found, [max(m) for m in met], rtol=1e-9)
    for k, smoothness in itertools.product(range(n + 1), (1e-3, 0.1, 1.0)):
        each = (
            math.exp(-smoothness * d) * max(change[max(k - d - 1, 0) : k + d + 1])
            for d in range(n + 1)
        )
        found_there = smooth_sensitivity(table, [[n - k, k]], smoothness)
        assert found_there == pytest.approx(max(each), rel=1e-9)


def test_a_lead_without_a_cut_is_that_of_the_second_class() -> None:
    teachers = [np.array([1, 0, 7])] * 3 + [np.array([0, 0, 1])]
    leads = Leads(3, 4).total(teachers, facts_of(Relation.ADD_REMOVE))
    assert leads.tolist() == [2.0, -4.0, 4.0]  # a vote beyond the classes is for the last one


def test_where_a_condition_of_theorem_6_fails_the_worst_case_is_charged() -> None:
    """At orders next to 1, where rounding would make the theorem's own number too small."""
    log_q, order = -np.geomspace(1e-4, 3.0, 4000), np.array([1 + 2.0**-50])
    n_refused = 0
    for s in (5.0, 20.0, 100.0, 500.0):
        mu_2 = s * np.sqrt(-log_q)
        some = mu_2 > 1.01
        slopes = np.log((mu_2[some] + 1) / (mu_2[some] - 1))
        fails = log_q[some] > (mu_2[some] - 1) * mu_2[some] / s**2 - mu_2[some] * slopes + 1e-9
        found = query_renyi(log_q[some][fails], s, order)[:, 0]
        assert np.all(found == order / s**2)
        n_refused += int(fails.sum())
    assert n_refused > 1000
