"""A student of PATE as a page: its guarantee, what was asked, what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit import __version__
from tacit.pate import WorstCase
from tacit.pate.aggregators import UNANSWERED
from tacit.pate.plan import CONSENSUS, PATEPlan, make_plan
from tacit.report.facts import ReportFacts
from tacit.report.html_table import Heading, Row, table
from tacit.report.markup import Markup, join, tag
from tacit.report.page import page, section
from tacit.report.sections.guarantee import guarantee_section

_OTHER_BUDGETS = (0.25, 0.5, 1.0, 2.0, 4.0)
_VOTES = (
    "Votes are private: how many teachers agreed is not known to anybody. What is shown are the "
    "answers, which were released with noise."
)
_IF = (
    "The share of answers that would be what most teachers say, by how many of them agree, all "
    "others agreeing on something else. From the plan alone; no record was asked."
)
_PUBLIC_LABELS = (
    "By the labels of the public rows, which need no protection. The student is judged on the rows "
    "that the teachers were not asked about."
)


@dataclass(frozen=True)
class PublicScores:
    """How answers and student compare with the labels of public rows."""

    answers: float
    student: float
    n_rows: int


def render_student(
    title: str, model: Any, scores: PublicScores | None = None, *, made_on: str = ""
) -> str:
    """Return the page of a fitted `PATEClassifier`: released results and public facts alone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tacit.pate import PATEClassifier
    >>> from tacit.report.student_page import render_student
    >>> rng = np.random.default_rng(0)
    >>> X, pool = rng.standard_normal((2000, 2)), rng.standard_normal((60, 2))
    >>> model = PATEClassifier(GaussianNB(), 50, GaussianNB(), 20, classes=[False, True])
    >>> text = render_student("Ill", model.fit(X, X[:, 0] > 0, pool))
    >>> "Votes are private" in text
    True
    """
    promise = model.privacy_
    main = join(
        guarantee_section(ReportFacts(title, promise)),
        _asked(model.plan_),
        _answered(model),
        _judged(scores),
        _budgets(model.plan_),
    )
    kind = f"a student of teachers that voted{', ' + made_on if made_on else ''}"
    header = join(tag("p", kind, class_="kicker"), tag("h1", title))
    footer = tag("p", f"Written by tacit {__version__}, from released results and public facts.")
    prefix = "NO GUARANTEE: " if promise.voided_by else ""
    return page(f"{prefix}{title}", header, main, footer)


def _asked(plan: PATEPlan) -> Markup:
    rows = [Row((name, f"{value:.6g}")) for name, value in plan.settings.items()]
    headings = (Heading("Setting"), Heading("Value", number=True))
    return section("asked", "What was asked", table(plan.reason, headings, rows))


def _answered(model: Any) -> Markup:
    said = model.answers_
    rows = [
        Row((str(label), str(int(np.sum(said == code)))))
        for code, label in enumerate(model.classes_.tolist())
    ]
    unanswered = int(np.sum(said == UNANSWERED))
    if unanswered:
        rows.append(Row(("no answer", str(unanswered))))
    headings = (Heading("Class"), Heading("Answers", number=True))
    told = getattr(model, "sanitised_", None)
    remark = tag("p", f"Beside the guarantee: {told}.") if told is not None else None
    return section("answers", "What was answered", table(_VOTES, headings, rows), remark)


def _judged(scores: PublicScores | None) -> Markup | None:
    if scores is None:
        return None
    rows = [
        Row(("answers that are right", f"{scores.answers:.1%}")),
        Row((f"student, on {scores.n_rows} other public rows", f"{scores.student:.1%}")),
    ]
    headings = (Heading("Accuracy"), Heading("Share", number=True))
    return section("judged", "How well it does", table(_PUBLIC_LABELS, headings, rows))


def _budgets(plan: PATEPlan) -> Markup | None:
    if plan.budget.is_infinite or plan.budget.is_pure:
        return None
    rows = [_budget_row(plan, epsilon) for epsilon in _budgets_of(plan)]
    shares = [Heading(f"{share:.0%} agree", number=True) for share in CONSENSUS]
    headings = (Heading("Epsilon"), *shares)
    return section("budgets", "What other budgets would do", table(_IF, headings, rows))


def _budgets_of(plan: PATEPlan) -> Sequence[float]:
    return sorted({*_OTHER_BUDGETS, plan.budget.epsilon})


def _budget_row(plan: PATEPlan, epsilon: float) -> Row:
    budget = replace(plan.budget, epsilon=epsilon)
    other = make_plan(budget, plan.n_teachers, plan.n_queries, plan.n_classes, None, WorstCase())
    kind = "chosen" if epsilon == plan.budget.epsilon else None
    return Row((f"{epsilon:g}", *(f"{other.right(share):.1%}" for share in CONSENSUS)), kind)
