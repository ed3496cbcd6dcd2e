"""Words that are heard again are the same, and fresh for each pair."""

from __future__ import annotations

import numpy as np

from tacit.audit.estimators import ReplayableSource
from tacit.erm.minimization import run_plan
from tacit.linear_model import LogisticRegression
from tacit.records import MemoryRecords


def test_words_are_the_same_in_whatever_portions() -> None:
    heard = ReplayableSource()
    first = np.concatenate([heard.words(n) for n in (1, 5, 0, 7)])
    again = heard.again()
    assert (np.concatenate([again.words(n) for n in (6, 7)]) == first).all()
    # whoever hears on gets new words, which the other may hear, too
    more = again.words(3)
    assert (heard.words(3) == more).all()
    assert not set(more.tolist()) & set(first.tolist())


def test_each_pair_has_noise_of_its_own_and_no_privacy() -> None:
    assert ReplayableSource().words(4).tolist() != ReplayableSource().words(4).tolist()
    assert not ReplayableSource().is_secure


def test_two_fits_that_hear_the_same_differ_by_what_the_record_does() -> None:
    model = LogisticRegression(
        1.0, 1e-5, row_norm=1.0, classes=[0, 1], regularization=1.0, fit_intercept=False
    )
    plan = model.plan(2)
    bounds = plan.problem.objective.bounds
    rows, labels = np.tile([[1.0, 0.0]], (101, 1)), np.append(-np.ones(100), 1.0)
    known, more = (MemoryRecords(rows[:n], labels[:n], bounds) for n in (100, 101))
    heard = ReplayableSource()
    first, second = run_plan(plan, known, heard), run_plan(plan, more, heard.again())
    third = run_plan(plan, known, ReplayableSource())
    assert first.event.reasons_void()
    # the noise is a hundred times what is between the two
    assert abs(first.value[1] - second.value[1]) < 0.02 * plan.settings["noise_std"]
    assert abs(first.value[1] - third.value[1]) > abs(first.value[1] - second.value[1])
