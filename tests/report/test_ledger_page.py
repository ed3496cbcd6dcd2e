"""The page of a ledger: one figure for what is spent, entries with their costs, files and words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tacit.ledger.entries import File
from tacit.privacy import Budget, Composed, Gaussian, Parallel, PureEpsilon
from tacit.report.charts import whole_axis
from tacit.report.pages import render_ledger
from tacit.report.wording import rounded_down, rounded_up

SHA256 = "cd" * 32


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "a.ledger", Budget(3.0, 1e-6), label="Survey")
    made.add_analyst("ann", 1.5)
    made.add_analyst("bo")
    return made


def plain(page: str) -> str:
    """Return the text of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.partition("<body>")[2]).split())


def test_what_is_spent_is_one_figure(ledger: Ledger) -> None:
    mine = ledger.bound(analyst="ann")
    for _ in range(5):
        mine.charge(Gaussian(20.0), 1e-7)
    said, spent = plain(render_ledger(ledger)), ledger.spent()
    assert f"{rounded_up(100 * spent / 3, 1)} % of the budget" in said
    assert f"{rounded_down(3 - spent)}" in said
    assert f"Of this epsilon, {rounded_up(spent)} is spent" in said
    # A filter promises its budget; what is spent when somebody looks is a gauge.
    assert f"private with epsilon = {rounded_up(spent)}" not in said
    assert "differentially private with epsilon = 3 and delta = 10⁻⁶" in said


def test_an_entry_has_its_cost_its_file_and_its_table(ledger: Ledger) -> None:
    mine = ledger.bound(analyst="ann", release="model", table="t.csv", purpose="why", who="me")
    paid = mine.charge(PureEpsilon(0.25))
    other = mine.bound(analyst="bo", table="").charge(PureEpsilon(0.125))
    ledger.add_file(paid.booking, SHA256, "m.tacit")
    page = render_ledger(ledger, files={other.booking.entry: File("n.tacit", "0" * 64)})
    said = plain(page)
    assert (
        f"me for ann model why from t.csv pure release m.tacit , SHA-256 {SHA256} 0.2500 0" in said
    )
    assert f"me for bo model why pure release n.tacit , SHA-256 {'0' * 64} 0.1250 0" in said
    assert "with a share of epsilon 1.5" in said
    assert "analyst declared: bo, with no share" in said


def test_events_are_in_plain_words(ledger: Ledger) -> None:
    both = (PureEpsilon(0.1), Gaussian(90.0))
    ledger.bound(analyst="bo").charge(Composed(both))
    ledger.bound(analyst="bo").charge(Parallel(both))
    said = plain(render_ledger(ledger))
    assert "pure release, together with Gaussian noise" in said
    assert "on disjoint parts of the records, the costliest counts" in said
    assert "composed" not in said
    assert "parallel" not in said


@pytest.mark.parametrize("last", [1, 2, 3, 5, 6, 7, 13, 40, 99, 12_345, 10**6])
def test_ticks_of_entries_are_whole(last: int) -> None:
    axis = whole_axis("entry", float(last))
    assert all(tick.is_integer() for tick in axis.ticks)
    assert axis.ticks[0] == 0.0
    assert len(axis.ticks) <= 8
    assert last <= axis.high <= max(2 * last, 1)
    assert all("." not in axis.label(tick) for tick in axis.ticks)


def test_a_share_of_nothing_yet_draws_no_line(tmp_path: Path) -> None:
    said = render_ledger(Ledger.create(tmp_path / "b.ledger", Budget(1.0)))
    assert "Spending over time" not in said
    assert "Number of pure releases" in said
