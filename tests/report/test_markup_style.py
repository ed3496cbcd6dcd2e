"""Contrast, by the formula of WCAG 2, and what the style sheet must have."""

from __future__ import annotations

import re

import pytest

from tacit.report.markup import STYLE


def colours(dark: bool) -> dict[str, str]:
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    assert len(blocks) == 2
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[int(dark)]))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(dark: bool) -> None:
    found = colours(dark)
    assert set(colours(True)) == set(colours(False))
    for text in ("ink", "soft", "accent", "alarm", "other"):
        for ground in ("ground", "tint" if text != "alarm" else "alarm-ground"):
            assert contrast(found[text], found[ground]) >= 4.5, (text, ground)


def test_screens_dark_screens_phones_and_paper() -> None:
    assert "@media screen and (prefers-color-scheme: dark)" in STYLE
    assert "@media print" in STYLE
    assert "@media (max-width:" in STYLE
    assert "tabular-nums" in STYLE


def test_nothing_is_fetched() -> None:
    assert not re.search(r"url\(|@import|@font-face|http|//", STYLE)
    assert "</" not in STYLE
