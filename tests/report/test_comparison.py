from __future__ import annotations

from tacit.report import AccuracyPicture, AccuracyPoint
from tacit.report.comparison import comparison_page

PICTURE = AccuracyPicture((AccuracyPoint("noisy_sgd", 1.0, 0.75, 0.01),), "It is a census.")


def test_that_it_is_not_private_stands_first() -> None:
    page = comparison_page("Income", PICTURE, remark="Scores are <b>.", made_on="2026-01-02")
    body = page[page.index("<body>") :]
    places = [
        body.index(text)
        for text in (
            "Not private: a comparison on public data, 2026-01-02",
            "<h1>Income</h1>",
            "These scores are not private",
            "It is a census.",
            "Scores are &lt;b&gt;.",
            "<figure>",
        )
    ]
    assert places == sorted(places)
    assert "<title>NOT PRIVATE: Income</title>" in page


def test_it_promises_nothing() -> None:
    page = comparison_page("Income", PICTURE)
    assert "carries no guarantee" in page
    for promise in ("Privacy report", 'id="guarantee"', "-differential", "released results"):
        assert promise not in page
