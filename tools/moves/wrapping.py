"""Wrap comments and docstrings whose lines a longer name made too long."""

from __future__ import annotations

import io
import re
import textwrap
import tokenize

WIDTH = 100


def wrapped(text: str) -> str:
    """Return a module whose prose fits its lines."""
    lines = text.split("\n")
    if not any(len(line) > WIDTH for line in lines):
        return text
    prose = prose_rows(text)
    i = 0
    done: list[str] = []
    while i < len(lines):
        line = lines[i]
        if len(line) <= WIDTH or i not in prose or not plain(line):
            done.append(line)
            i += 1
            continue
        lead = re.match(r"\s*(?:# )?", line)[0]  # type: ignore[index]
        words = [line[len(lead) :]]
        # What does not fit goes into the lines below, as far as the paragraph goes on.
        j = i + 1
        while j < len(lines) and j in prose and goes_on(lines[j], lead):
            words.append(lines[j].strip().removeprefix("# ").strip())
            j += 1
        closing = ""
        if words[-1].endswith('"""') and words[-1] != '"""':
            closing = '"""'
            words[-1] = words[-1][:-3]
        joined = " ".join(words)
        new = textwrap.wrap(
            joined, WIDTH - len(lead) - len(closing), break_long_words=False, break_on_hyphens=False
        )
        done += [lead + w for w in new[:-1]] + [lead + new[-1] + closing]
        i = j
    return "\n".join(done)


def plain(line: str) -> bool:
    """Return whether a line is prose that may be wrapped."""
    inner = line.strip().removeprefix("# ")
    return (
        not inner.startswith((">>>", "...", "-", "*", "|", '"""', "#:", "noqa"))
        and "  " not in inner
    )


def goes_on(line: str, lead: str) -> bool:
    """Return whether a line continues the paragraph of lines that begin so."""
    if not line.strip() or line.strip() in ("#", '"""') or not plain(line):
        return False
    own = re.match(r"\s*(?:# )?", line)[0]  # type: ignore[index]
    return own == lead and not re.match(r"[-=]{3,}$", line.strip())


def prose_rows(text: str) -> set[int]:
    """Return the rows, from 0, that hold a comment alone or lie within a docstring."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.strip().startswith("#"):
            found.add(token.start[0] - 1)
        if (
            token.type == tokenize.STRING
            and token.string.lstrip("rR").startswith('"""')
            and (token.line.strip().startswith(('"""', 'r"""')) or token.start[0] != token.end[0])
        ):
            found |= set(range(token.start[0] - 1, token.end[0]))
    return found
