from __future__ import annotations

import pytest

from tacit.features import GaussianKernel, RandomFourierFeatures
from tacit.tuning import LogUniform, Made, Uniform
from tacit.tuning.space import candidates


def test_lists_are_all_combined_where_they_are_few() -> None:
    found = candidates({"a": [1, 2, 3], "b": ["x", "y"]}, 6)
    assert [tuple(one.values()) for one in found] == [(a, b) for a in (1, 2, 3) for b in ("x", "y")]


def test_many_combinations_and_laws_are_spread_evenly() -> None:
    space = {"a": LogUniform(1.0, 1e4), "b": Uniform(-1.0, 1.0), "c": list(range(5))}
    found = candidates(space, 40)
    assert len(found) == 40
    assert found == candidates(space, 40)  # public, and the same for a plan and a fit
    for decade in (1.0, 10.0, 100.0, 1000.0):
        assert 8 <= sum(decade <= one["a"] < 10 * decade for one in found) <= 12
    assert 14 <= sum(one["b"] < 0 for one in found) <= 26
    assert {one["c"] for one in found} == set(range(5))
    assert len(candidates({"a": list(range(100))}, 7)) == 7


@pytest.mark.parametrize(
    "space", [{}, [1, 2], {"a": []}, {"a": 3.0}, {"a": "text"}, {"a": None}], ids=str
)
def test_what_is_no_space_is_refused(space: object) -> None:
    with pytest.raises(ValueError, match="param_distributions"):
        candidates(space, 8)


def test_a_bandwidth_has_a_law() -> None:
    found = candidates({"kernel": Made(GaussianKernel, LogUniform(0.1, 10.0))}, 9)
    widths = sorted(one["kernel"].bandwidth for one in found)
    assert 0.1 <= widths[0] < 0.3
    assert 3.0 < widths[-1] <= 10.0
    # by a name that the doc page says
    assert RandomFourierFeatures().set_params(**found[0]).kernel == found[0]["kernel"]
    for wrong in ((GaussianKernel, 3.0), (0.1, LogUniform(0.1, 10.0))):
        with pytest.raises(TypeError, match="LogUniform"):
            Made(*wrong)


@pytest.mark.parametrize("law", [LogUniform, Uniform])
def test_laws_have_two_ends(law: type) -> None:
    with pytest.raises(ValueError):
        law(2.0, 1.0)
    with pytest.raises(ValueError):
        LogUniform(0.0, 1.0)
