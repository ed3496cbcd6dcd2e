"""What is declared in `tacit.registry`, made and fitted; and every class of tacit, found."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
from sklearn.base import clone

import tacit
from tacit.registry import MODELS, Example, ModelSpec
from tacit.testing import replay

# Every declared model with each of its example problems, by name.
PROBLEMS: dict[str, tuple[ModelSpec, Example]] = {
    f"{spec.word}-{example.name}": (spec, example) for spec in MODELS for example in spec.examples()
}


# Estimators made of others: what they share is tried with those, and these are slow but for one.
MADE_OF_OTHERS = ("kernel_logistic-three", "kernel_svc", "kernel_ridge")


def with_slow(names: Iterable[str], prefixes: tuple[str, ...] = MADE_OF_OTHERS) -> list[Any]:
    """Return names of cases, those marked slow that begin so."""
    slow = pytest.mark.slow
    return [pytest.param(n, marks=slow) if n.startswith(prefixes) else n for n in names]


def made(spec: ModelSpec, example: Example | None = None, /, **parameters: Any) -> Any:
    """Return an estimator, for an example; parameters that its class does not have are left out."""
    known = spec.model().get_params()
    given = {name: value for name, value in parameters.items() if name in known}
    return spec.model(**{**(example.parameters if example else {}), **given})


def word_of(spec: ModelSpec) -> str:
    """Return the word of a model, for the name of a test."""
    return spec.word


def fit(estimator: Any, rows: Any, labels: Any, *more: Any) -> Any:
    """Return a fitted estimator; one without labels is given none."""
    return estimator.fit(rows) if labels is None else estimator.fit(rows, labels, *more)


def replayed(estimator: Any, data: Any, neighbour: Any) -> int:
    """Fit clones to neighbours with one tape; return how many releases were compared."""
    return replay(lambda records: fit(clone(estimator), *records), data, neighbour)


@cache
def all_classes() -> frozenset[type[Any]]:
    """Return every class that a module of tacit defines."""
    modules = pkgutil.walk_packages(tacit.__path__, "tacit.")
    found = (
        cls
        for module in modules
        if not module.name.endswith("__main__") and not _is_missing(module.name)
        for cls in vars(importlib.import_module(module.name)).values()
    )
    return frozenset(c for c in found if inspect.isclass(c) and c.__module__.startswith("tacit."))


def _is_missing(module: str) -> bool:
    """Return whether a module needs what is not installed."""
    return module.startswith("tacit.deep") and find_spec("torch") is None


def concrete(*, having: tuple[str, ...] = (), under: type[Any] = object) -> set[type[Any]]:
    """Return the classes of tacit with these members, protocols and abstract ones left out."""
    return {
        cls
        for cls in all_classes()
        if issubclass(cls, under)
        and all(hasattr(cls, name) for name in having)
        and not getattr(cls, "_is_protocol", False)
        and not inspect.isabstract(cls)
    }
