"""Forged files: the checksums fit, but the values do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tacit import __version__
from tacit.privacy import PureEpsilon
from tacit.saving import NotAModel
from tacit.saving.container import pack
from tacit.saving.model_file import load_bytes
from tests.saving.helpers import edited, fitted, unpacked


def put(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return an edit that sets the value at a path."""

    def edit(record: Any) -> None:
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return edit


def drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def edit(record: Any) -> None:
        for key in path[:-1]:
            record = record[key]
        del record[path[-1]]

    return edit


FORGED = [
    ("logistic", put("format", value="other"), "does not say that it is a tacit-model"),
    ("logistic", put("version", value=2), f"of version 2, written by tacit '{__version__}'"),
    ("logistic", put("version", value=True), "of version True"),
    ("logistic", put("version", value=1.0), "of version 1.0"),
    ("logistic", put("extra", value=1), "does not have the entries"),
    ("logistic", drop("plan"), "does not have the entries"),
    ("logistic", put("tacit", value=None), "does not have the entries"),
    ("logistic", put("kind", value="os.system"), "kind 'os.system', which this tacit"),
    ("logistic", put("kind", value=["mean"]), "which this tacit"),
    ("logistic", put("kind", value="linear_regression"), "no parameter 'class"),
    ("linear", put("kind", value="mean"), "no parameter"),
    ("logistic", put("parameters", value=[]), "parameters is not a mapping"),
    ("logistic", put("parameters", "random_state", value=3), "no parameter 'random_state'"),
    ("logistic", put("parameters", "accountant", value=3), "no parameter 'accountant'"),
    ("logistic", put("parameters", "epsilon", value=0.5), "plan is for another budget"),
    ("logistic", put("parameters", "epsilon", value="1"), "not a budget"),
    ("logistic", put("parameters", "epsilon", value=-1.0), "not a budget"),
    ("logistic", put("parameters", "delta", value=1e-9), "guarantee is for another budget"),
    ("logistic", put("parameters", "relation", value="replace"), "another budget"),
    ("mean", put("parameters", "delta", value=1e-9), "guarantee is for another budget"),
    ("mean", put("plan", value={"part": "whole_space", "fields": {}}), "plan"),
    ("logistic", put("plan", value={"part": "whole_space", "fields": {}}), "plan"),
    ("logistic", drop("released", "coef_"), "not hold what a LogisticRegression|not use"),
    ("logistic", put("released", "secret_", value=1), "not hold what a LogisticRegression"),
    ("logistic", put("released", "n_features_in_", value=4), "coef_ is not an array"),
    ("logistic", put("released", "n_features_in_", value=True), "n_features_in_ is not"),
    ("logistic", put("released", "row_norm_", value=0.0), "row_norm_ is not a finite number"),
    ("logistic", put("released", "row_norm_", value=None), "row_norm_ is not a finite number"),
    ("logistic", put("released", "coef_", value=[1.0]), "not use|coef_ is not"),
    (
        "softmax_words",
        put("released", "feature_names_in_", value={"objects": ["a"]}),
        "feature_names_in_ is not a list of 3 words",
    ),
    (
        "softmax_objects",
        put("released", "classes_", value={"objects": ["b", "a", "c"]}),
        "not in order",
    ),
    (
        "softmax_objects",
        put("released", "classes_", value={"objects": ["a", 1, None]}),
        "several types",
    ),
    (
        "softmax_objects",
        put("released", "classes_", value={"objects": ["a", "b"]}),
        "coef_ is not an array",
    ),
    ("linear", put("released", "intercept_", value={"float": "inf"}), "intercept_ is not"),
    (
        "logistic",
        put("plan", "fields", "problem", "fields", "n_features", value=9),
        "plan is for another budget or table",
    ),
    (
        "svc",
        put("plan", "fields", "event", "event", value=PureEpsilon(1.0).to_dict()),
        "not about the release that its plan",
    ),
    ("table", put("schema", value={}), "entries it should have"),
    ("table", put("schema", "dtype", value="<i8"), "of a type that models do not have"),
    ("table", put("schema", "facts", value=[]), "schema is not possible"),
    ("table", put("schema", "facts", "columns", value=[]), "target is not what its estimator"),
    ("table", put("schema", value=None), None),
]


@pytest.mark.parametrize(("name", "edit", "why"), FORGED)
def test_values_that_do_not_fit_together(name: str, edit: Any, why: str | None) -> None:
    if why is None:
        # the estimator without its schema is a model too
        assert type(load_bytes(edited(name, edit)).model) is type(fitted(name).estimator_)
        return
    with pytest.raises(NotAModel, match=why):
        load_bytes(edited(name, edit))


def test_an_edit_that_changes_nothing_is_taken() -> None:
    """So that the refusals above come from the edits and not from the editing."""
    assert load_bytes(edited("logistic", lambda record: None)).record["tacit"] == __version__


def test_a_missing_parameter_is_its_default() -> None:
    """A parameter that a later tacit adds is not in the files of an earlier one."""
    again = load_bytes(edited("logistic", drop("parameters", "verbose"))).model
    assert again.verbose == 0


def test_members_that_are_not_used_or_missing() -> None:
    members = unpacked("logistic")
    with pytest.raises(NotAModel, match="does not use"):
        load_bytes(pack({**members, "released.more.npy": members["released.coef_.npy"]}))
    with pytest.raises(NotAModel, match="does not use"):
        load_bytes(pack(dict(sorted(members.items()))))
    for name in members:
        with pytest.raises(NotAModel):
            load_bytes(pack({k: v for k, v in members.items() if k != name}))


def test_the_guarantee_of_another_model_is_refused() -> None:
    members = unpacked("logistic")
    members["guarantee.json"] = unpacked("softmax_words")["guarantee.json"]
    with pytest.raises(NotAModel, match="guarantee is for another budget"):
        load_bytes(pack(members))
    members["guarantee.json"] = unpacked("linear")["guarantee.json"]
    with pytest.raises(NotAModel, match="guarantee is not about the release"):
        load_bytes(pack(members))


def test_swapped_arrays_are_refused() -> None:
    members = unpacked("softmax_words")
    one, two = "released.coef_.npy", "released.intercept_.npy"
    members[one], members[two] = members[two], members[one]
    with pytest.raises(NotAModel, match=r"released\.coef_\.npy: .* declared type"):
        load_bytes(pack(members))
