"""HTML that cannot be broken from inside: every text is escaped unless it is already markup."""

from __future__ import annotations

import html
import unicodedata

LONGEST_TEXT = 4000
LONGEST_NAME = 200
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Characters that would reorder what stands around them, so that a name could rewrite a sentence.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_VOID = frozenset({"br", "circle", "line", "link", "meta", "path", "polyline", "rect"})


class Markup(str):
    """Text that is HTML already. Only this file and `style` make it from plain text."""

    __slots__ = ()


Child = str | Markup | None


def escape(text: str, longest: int = LONGEST_TEXT) -> Markup:
    """Return text that a browser shows as it is, without controls and of bounded length.

    Examples
    --------
    >>> from tacit.report.markup import escape
    >>> escape("<b>&")
    '&lt;b&gt;&amp;'
    """
    if len(text) > longest:
        text = text[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return Markup(html.escape("".join(map(_shown, text)), quote=True))


def _shown(character: str) -> str:
    if character in "\n\t":
        return " "
    hidden = unicodedata.category(character) in ("Cc", "Cs") or character in _REORDERING
    return _REPLACEMENT if hidden else character


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """Return an element; attributes as keywords, ``class_`` for class, ``_`` for a hyphen.

    An attribute that is None or False is left out, and so is a child that is None.

    Examples
    --------
    >>> from tacit.report.markup import tag
    >>> tag("p", "1 < 2", tag("br"), class_="note")
    '<p class="note">1 &lt; 2<br></p>'
    """
    inside = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{inside}>" if name in _HTML_VOID else f"<{name}{inside}/>")
    return Markup(f"<{name}{inside}>{join(*children)}</{name}>")


_HTML_VOID = frozenset({"br", "link", "meta"})


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    name = "viewBox" if name == "viewbox" else name
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def join(*children: Child) -> Markup:
    """Return several pieces one after the other, each escaped unless it is markup."""
    pieces = (child for child in children if child is not None)
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in pieces))


def named(text: str) -> Markup:
    """Return a name from a table or a schema, set apart from the text around it."""
    return tag("bdi", escape(text, LONGEST_NAME))
