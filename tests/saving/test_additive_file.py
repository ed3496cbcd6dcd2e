"""Additive models in files: the same predictions, and nothing that a fit does not release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.privacy import Accountant, Budget, Relation
from tacit.saving import load, save
from tacit.saving.container import NotAModel, pack, to_json
from tacit.saving.model_file import DOCUMENT, load_bytes, members_of
from tests.additive.test_estimators import CASES, made, table


@pytest.mark.parametrize("epsilon", [0.5, 20.0])
@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_predicts_the_same_bits(case: str, epsilon: float, tmp_path: Path) -> None:
    data = table(800)
    model = made(case, epsilon=epsilon).fit(data)
    save(model, tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    for name, part in model.explain(data).items():
        np.testing.assert_array_equal(again.explain(data)[name], part)
    assert again.privacy_.event == model.privacy_.event
    assert again.kept_ == model.kept_
    assert str(again.plan_) == str(model.plan_)
    assert type(again) is type(model)


def test_an_accountant_may_plan_another_delta(tmp_path: Path) -> None:
    accountant = Accountant(Budget(2.0, 1e-6, Relation.ADD_REMOVE_PERSON))
    model = made("two", accountant=accountant).fit(table(800), unit=np.arange(800))
    save(model, tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert again.privacy_.event == model.privacy_.event == again.plan_.event
    assert again.accountant is None


@pytest.fixture(scope="module")
def members() -> dict[str, bytes]:
    """Return the members of a file."""
    return members_of(made("two", epsilon=20.0).fit(table(800)))


def _drop_a_term(record: dict[str, Any]) -> None:
    record["terms"].pop()


def _other_budget(record: dict[str, Any]) -> None:
    record["parameters"]["epsilon"] = 0.1


def _other_schema(record: dict[str, Any]) -> None:
    record["facts"]["columns"] = {}


@pytest.mark.parametrize("edit", [_drop_a_term, _other_budget, _other_schema])
def test_an_edited_file_is_refused(edit: Any, members: dict[str, bytes]) -> None:
    assert load_bytes(pack(members)).model.terms_
    record = json.loads(members[DOCUMENT])
    edit(record)
    with pytest.raises(NotAModel):
        load_bytes(pack({**members, DOCUMENT: to_json(record)}))
