from __future__ import annotations

import pytest

from tacit.cli.running import Refused, before_records, sentence_of
from tacit.erm import CannotSolve
from tacit.privacy import BudgetExceeded
from tacit.saving import NotAModel


def test_own_errors_are_told_on_one_line() -> None:
    for kind in (Refused, NotAModel, CannotSolve, BudgetExceeded):
        assert sentence_of(kind("one\n  two.")) == "one two."


def test_what_others_say_is_not_told() -> None:
    assert sentence_of(ValueError("could not convert string to float: 'Zebulon'")) is None
    assert sentence_of(RuntimeError("Zebulon")) is None


def test_memory() -> None:
    assert "--float32" in str(sentence_of(MemoryError()))


def test_before_records_everything_may_be_told() -> None:
    with pytest.raises(Refused, match="epsilon"), before_records():
        raise TypeError("epsilon")
    with pytest.raises(KeyError), before_records():
        raise KeyError("a bug")
