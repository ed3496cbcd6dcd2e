from __future__ import annotations

import pytest

from tacit.report.markup import LONGEST_NAME, Markup, escape, join, named, tag
from tests.report.helpers import read


@pytest.mark.parametrize("text", ["<script>", "a & b", '"><img onerror=x>', "'", "</style>"])
def test_text_comes_back_as_text(text: str) -> None:
    tree = read(tag("p", text, title=text))
    (paragraph,) = tree.children
    assert paragraph.text == text
    assert paragraph.attributes == {"title": text}
    assert paragraph.children == []


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "&")) == "<p><b>&amp;</b></p>"
    assert join("<", Markup("<"), None) == "&lt;<"


def test_a_string_method_gives_text_again() -> None:
    # What was cut out of markup may be half a tag, so it is text.
    assert not isinstance(Markup("<b>")[1:], Markup)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u202e", "\ud800", "\u2066"])
def test_what_cannot_be_shown_is_replaced(character: str) -> None:
    assert escape(f"a{character}b") == "a\ufffdb"
    escape(character).encode("utf-8")


def test_names_have_a_length() -> None:
    assert len(read(named("x" * 10_000)).text) == LONGEST_NAME


def test_attributes() -> None:
    assert tag("line", x1=1, class_="a", data_x=None) == '<line x1="1" class="a"/>'
    assert tag("svg", viewbox="0 0 1 1") == '<svg viewBox="0 0 1 1"></svg>'
