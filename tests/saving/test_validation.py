from __future__ import annotations

from copy import copy

import pytest

from tacit.registry import SOMETIMES
from tacit.saving import NotAModel
from tacit.saving.validation import NOT_STORED, STORED, check_released, kind_of
from tests.saving.helpers import FITS, fitted


@pytest.mark.parametrize("name", FITS)
def test_every_released_attribute_is_listed(name: str) -> None:
    """Nothing that a fit sets is lost, and nothing but what it sets is stored."""
    model = fitted(name)
    model = model.released_estimator() if hasattr(model, "steps") else model
    spec = STORED[str(kind_of(model))]
    set_by_fit = {attribute for attribute in vars(model) if attribute.endswith("_")}
    listed = {*spec.released, "privacy_", *(("plan_",) if spec.has_plan else ())}
    assert set_by_fit | SOMETIMES == listed | SOMETIMES


@pytest.mark.parametrize("kind", STORED)
def test_every_released_attribute_is_checked(kind: str) -> None:
    """One that nobody looks at when a file is read could hold anything."""
    model = next(fitted(n) for n in FITS if type(fitted(n)) is STORED[kind].model)
    check_released(model, STORED[kind])
    for name in STORED[kind].released:
        forged = copy(model)
        setattr(forged, name, "anything")
        with pytest.raises(NotAModel, match=name):
            check_released(forged, STORED[kind])


def test_what_is_never_stored_are_parameters() -> None:
    for spec in STORED.values():
        assert set(NOT_STORED) <= set(spec.model().get_params())
