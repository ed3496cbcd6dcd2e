from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable

import numpy as np
import pytest

from tacit.cli import output


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    long = "word " * 60
    output.say(long)
    output.boxed("Guarantee", long)
    output.facts({"model": "m.tacit"})
    output.table("Title", ("a", "b"), [("x", "1"), ("y", "2")])
    output.note("beside")
    out, err = capsys.readouterr()
    assert out == f"{long}\nGuarantee: {long}\nmodel: m.tacit\na\tb\nx\t1\ny\t2\n"
    assert err == "beside\n"


def test_a_terminal_gets_boxes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    output.boxed("Guarantee", "word " * 60)
    output.table("Title", ("a", "b"), [("[red]", "1")])
    with output.progress("reading", "training") as step:
        step(0.5)
        step(1.0)
    out, err = (re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text) for text in capsys.readouterr())
    assert "╭─ Guarantee" in out
    assert "[red]" in out  # markup in values is not obeyed
    assert "reading" in err
    assert "training" in err


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"a": math.inf, "b": [np.float64(1.5), (True, None)], "c": {"d": "é"}})
    text = capsys.readouterr().out
    assert json.loads(text) == {"a": None, "b": [1.5, [True, None]], "c": {"d": "é"}}


def test_progress_is_not_shown_to_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    with output.counted("comparing", 2) as step:
        step()
        step()
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("print_it", [output.say, output.note, lambda t: output.boxed("T", t)])
def test_names_of_strangers_give_a_terminal_no_orders(
    print_it: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    print_it("recall of \x1b]0;owned\x07\x1b[2J\u202e:\t0.5\nprecision")
    printed = "".join(capsys.readouterr())
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    assert printed.endswith(":\t0.5\nprecision\n")


@pytest.mark.parametrize(
    "print_it",
    [
        lambda name: output.written_csv([name], [[1.5, name]]),
        lambda name: output.table("Title", (name, "b"), [(name, "1")]),
        output.written,
    ],
)
def test_files_and_tables_on_a_terminal_give_it_no_orders(
    print_it: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    print_it("recall\x1b]0;owned\x07\x9b31m\u202e")
    printed = capsys.readouterr().out
    assert "recall" in printed
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(printed)
