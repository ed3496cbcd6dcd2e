"""What an entry and the totals say is one text, however it was put together."""

from __future__ import annotations

import pytest

from tacit.ledger.state import INFINITE, LIMIT, RULES, WHOLE, Share, State, Terms, rule_for
from tacit.ledger.store import GENESIS, Draft, canonical, digest
from tacit.privacy import Budget, Odometer
from tacit.privacy.guarantee import Booking

SAID = {
    "who": 'Zo\u00eb "Z" \\ \n\u2028\U0001f600',
    "event": {"version": 1, "kind": "gaussian", "noise_multiplier": 0.1, "list": [1, 2.5, None]},
    "cost": [WHOLE, INFINITE],
    "delta": 1e-07,
    "analyst": None,
    "flag": True,
}
MORE = {"number": 12, "state": "ab" * 32, "key": 'k"\u00e9', "totals": {"whole": [1], "a": {}}}


def test_a_draft_says_what_all_of_it_says_at_once() -> None:
    draft = Draft(SAID)
    for number in (12, 13):
        more = {**MORE, "number": number}
        entry = draft.sealed(more, GENESIS)
        assert entry.body == canonical({**SAID, **more})
        assert entry.hash == digest(f"{GENESIS}\n{entry.body}")
        assert (entry.number, entry.key) == (number, MORE["key"])
        assert entry.content == {**SAID, **more}
    assert Draft(SAID).sealed({"number": 0}, GENESIS).key is None


@pytest.mark.parametrize(
    "state",
    [
        State(),
        State((0,)),
        State((7, INFINITE)),
        State((7,), {"b": (1,), "a": (2,)}),
        State((7,), {}, {'"': Share(0.5, (3,))}),
    ],
)
def test_totals_are_one_text(state: State) -> None:
    assert state.text == canonical(state.to_dict())
    assert State.from_text(state.text) == state


@pytest.mark.parametrize("name", [name for name in RULES if name not in ("odometer", "either")])
def test_the_last_part_decides(name: str) -> None:
    budget = Budget(1.0, 1e-6)
    terms = Terms("0" * 32, budget, rule_for(name, budget))
    assert not isinstance(terms.rule, Odometer)
    others = (0,) * (len(terms.limits) - 1)
    assert LIMIT == WHOLE + 10**6  # the 10^12th part that accountants allow for rounding
    assert terms.fits((LIMIT, *others))
    assert not terms.fits((LIMIT + 1, *others))


def test_one_filter_of_either_is_enough() -> None:
    budget = Budget(1.0, 1e-6)
    terms = Terms("0" * 32, budget, rule_for("either", budget))
    over, none = LIMIT + 1, 10**36
    for fits in (
        (LIMIT, LIMIT, none, none, none),
        (none, none, LIMIT, none, LIMIT),
        (none, none, none, LIMIT, LIMIT),
    ):
        assert terms.fits(fits)
        for place, part in enumerate(fits):
            if part == LIMIT:
                assert not terms.fits((*fits[:place], over, *fits[place + 1 :]))


@pytest.mark.parametrize("wrong", ["g" * 64, "a" * 63, "a" * 31 + "A" + "a" * 32, "é" * 64, 7])
def test_a_booking_names_a_head(wrong: object) -> None:
    assert Booking("0" * 32, 7, "0123456789abcdef" * 4).entry == 7
    with pytest.raises(ValueError, match="head must be 64 hexadecimal digits"):
        Booking("0" * 32, 7, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ledger must be 32 hexadecimal digits"):
        Booking("x" * 32, 7, "a" * 64)
    for entry in (-1, True, 1.5):
        with pytest.raises((ValueError, TypeError), match="entry"):
            Booking("0" * 32, entry, "a" * 64)  # type: ignore[arg-type]
