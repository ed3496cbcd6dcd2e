from __future__ import annotations

import pytest

import tacit.linear_model
import tacit.location
from tacit.saving.kinds import KINDS, NOT_STORED, word_of_model
from tests.saving.helpers import FITS, fitted


def test_every_estimator_has_a_word() -> None:
    """A new estimator that is forgotten here could not be saved."""
    public = {getattr(tacit.linear_model, name) for name in tacit.linear_model.__all__}
    public |= {tacit.location.Mean, tacit.location.Median, tacit.location.GeometricMedian}
    assert public == {kind.model for kind in KINDS.values()}


@pytest.mark.parametrize("name", FITS)
def test_every_released_attribute_is_listed(name: str) -> None:
    """Nothing that a fit sets is lost, and nothing but what it sets is stored."""
    model = fitted(name)
    model = getattr(model, "estimator_", model)
    kind = KINDS[str(word_of_model(model))]
    set_by_fit = {attribute for attribute in vars(model) if attribute.endswith("_")}
    listed = {*kind.released, "privacy_", *(("plan_",) if kind.has_plan else ())}
    assert set_by_fit | {"feature_names_in_"} == listed | {"feature_names_in_"}


def test_what_is_never_stored_are_parameters() -> None:
    for kind in KINDS.values():
        assert set(NOT_STORED) <= set(kind.model().get_params())
