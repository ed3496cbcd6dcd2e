from __future__ import annotations

import numpy as np

from tacit.erm import L2Ball, NoisyGradient
from tacit.linear_model import LogisticRegression
from tacit.privacy import Accountant, Budget, Relation
from tacit.report.wording import public_facts


def shown(parameters: dict[str, object], classes: list[object] | None = None) -> dict[str, str]:
    facts = public_facts(parameters, Relation.ADD_REMOVE, classes)
    return {fact.name: fact.value for fact in facts}


def test_the_seed_and_the_accountant_are_left_out() -> None:
    model = LogisticRegression(
        random_state=987_654, accountant=Accountant(Budget(7.25, 1e-6)), constraint=L2Ball(1.0)
    )
    text = repr(shown(model.get_params(deep=False)))
    assert "987" not in text
    assert "7.25" not in text
    assert "L2Ball" in text


def test_an_object_shows_its_type_only() -> None:
    class Secret:
        def __repr__(self) -> str:
            return "the records"

    assert shown({"center": Secret()})["Centre"] == "Secret"


def test_values_in_words() -> None:
    facts = shown(
        {
            "label_range": (0, 20),
            "n_records": "infer",
            "mechanism": NoisyGradient(n_steps=3),
            "center": np.zeros(30),
            "fit_intercept": True,
        },
        [False, True],
    )
    assert facts["Label range"] == "0 to 20"
    assert facts["Number of records"] == "inferred from the data"
    assert facts["Requested mechanism"] == "Noisy gradient descent"
    assert facts["Centre"].endswith("and 6 more")
    assert facts["Intercept"] == "yes"
    assert facts["Classes"] == "False, True"


def test_a_class_may_be_called_infer() -> None:
    assert shown({"classes": ["infer", "x"]}, ["infer", "x"])["Classes"] == "infer, x"
