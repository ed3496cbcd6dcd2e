"""What counts as a change of a case, and that cases do not see each other."""

from __future__ import annotations

import math
import random
import secrets
from typing import Any

import numpy as np
import pytest

from tacit.privacy import Gaussian, NonPrivate, Relation
from tests.golden.comparing import HERE, allowed, differences
from tests.golden.pinning import by_itself, encoded, event_pins
from tests.golden.regenerate import run

NUMBER = 0.1


@pytest.mark.parametrize(
    ("stored", "found", "most"),
    [
        (NUMBER, math.nextafter(NUMBER, 1.0), 2e-16),
        ([[1.0, NUMBER]], [[1.0, math.nextafter(NUMBER, 1.0)]], 2e-17),
        (0.0, -0.0, 1e-300),
        ([0.0, 1.0], [-0.0, 1.0], 1e-300),
        ([1.0, 2.0], [[1.0, 2.0]], math.inf),
        ([1.0], [1.0, 1.0], math.inf),
        (1.0, "1.0", math.inf),
        (1, True, math.inf),
        ("nan", 1.0, math.inf),
        ({"float32": [1.0]}, [1.0], math.inf),
        ({"coef_": [1.0]}, {}, math.inf),
        ({}, {"coef_": [1.0]}, math.inf),
        (["a", 1.0], ["b", 1.0], math.inf),
        (None, 0.0, math.inf),
    ],
)
def test_a_released_number_may_not_differ_at_all(stored: Any, found: Any, most: float) -> None:
    (difference,) = differences({"released": {"x": stored}}, {"released": {"x": found}})
    assert 0.0 < difference.relative <= most
    assert not differences({"released": {"x": stored}}, {"released": {"x": stored}})


def test_a_plan_may_differ_by_a_rounding() -> None:
    one, other = ({"plan": {"settings": {"noise_std": x}}} for x in (1.0, 1.0 + 1e-12))
    assert not differences(one, other)
    assert differences(one, {"plan": {"settings": {"noise_std": 1.0 + 1e-10}}})
    assert differences(one, {"plan": {"settings": {"std": 1.0}}})
    assert differences(one, {**one, "event": {}})
    assert differences(
        {"noise": [["gaussian", "L2", 1.0, 3]]}, {"noise": [["gaussian", "L2", 1.0, 4]]}
    )


def test_where_numbers_round_otherwise_they_are_compared_less_closely() -> None:
    here, there = {"numpy": "2"}, {"numpy": "1"}
    assert allowed("mechanisms", "ball", here, here) == HERE
    assert allowed("networks", "classifier", here, here) == HERE
    far = allowed("mechanisms", "ball", there, here)
    assert (far.released, far.plans) == (1e-9, 1e-11)
    assert allowed("networks", "classifier", there, here).released == 1e-5
    assert "single precision" in allowed("networks", "classifier", there, here).why


def test_values_keep_their_bits() -> None:
    values = np.array([0.1, -0.0, 5e-324, np.nextafter(1.0, 2.0), np.inf, np.nan])
    assert encoded(values)[:4] == values[:4].tolist()
    assert encoded(values)[4:] == ["inf", "nan"]
    assert encoded(np.float32([0.1])) == {"float32": [float(np.float32(0.1))]}
    with pytest.raises(TypeError, match="cannot be pinned"):
        encoded(object())


def test_an_event_is_kept_without_its_sentences() -> None:
    seeded = NonPrivate("the noise is seeded", would_be=Gaussian(2.0, Relation.REPLACE))
    assert event_pins(seeded) == event_pins(Gaussian(2.0, Relation.REPLACE))
    assert event_pins(seeded) == {
        "kind": "gaussian",
        "noise_multiplier": 2.0,
        "relation": "replace",
    }


def test_a_case_leaves_nothing_and_finds_nothing() -> None:
    before = secrets.randbits
    with by_itself("a case"):
        first = [secrets.randbits(128), random.random(), np.random.random()]  # noqa: NPY002
    state = random.getstate()
    with by_itself("a case") as asked:
        again = [secrets.randbits(128), random.random(), np.random.random()]  # noqa: NPY002
    assert first == again
    assert asked == [128]
    assert secrets.randbits is before
    assert random.getstate() == state
    with by_itself("another case"):
        assert secrets.randbits(128) != first[0]


def test_a_case_gives_the_same_twice() -> None:
    names = [("mechanisms", "median-middle-add_remove"), ("votes", "two-auto-replace")]
    once = [run(*name).pins for name in names]
    assert [run(*name).pins for name in reversed(names)] == once[::-1]
