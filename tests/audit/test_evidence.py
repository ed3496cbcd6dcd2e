"""Every kind of event has a test that would notice too large a promise; the table says which."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest

from tacit.privacy import Composed, Gaussian, Guarantee, NonPrivate, PureEpsilon, ZeroConcentrated
from tacit.privacy.events.base import _KINDS
from tests.audit.evidence import EVIDENCE, PAGE, ROOT, table


def test_every_kind_has_evidence() -> None:
    ours = {kind for kind, event in _KINDS.items() if event.__module__.startswith("tacit.")}
    assert set(EVIDENCE) == ours


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == table(), "run python -m tests.audit.evidence"


@pytest.mark.parametrize("kind", EVIDENCE)
def test_the_evidence_is_there_and_not_slow(kind: str) -> None:
    file, name, _ = EVIDENCE[kind]
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    (found,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name
    )
    marks = [ast.unparse(mark) for mark in found.decorator_list]
    # Some parameters may be slow, never the test itself.
    assert not any(mark.startswith("pytest.mark.slow") for mark in marks)


def test_two_randomised_responses_by_enumeration() -> None:
    one, other = 0.3, 0.7
    promise = Guarantee(Composed((PureEpsilon(one), PureEpsilon(other))))
    for epsilon in (0.1, 0.5, 0.9):
        exact = 0.0
        for a in (one, -one):
            for b in (other, -other):
                mass = 1 / ((1 + math.exp(-a)) * (1 + math.exp(-b)))
                exact += mass * max(-math.expm1(epsilon - a - b), 0.0)
        assert exact * (1 - 1e-9) <= promise.delta(epsilon) <= exact * 1.02 + 1e-9


def test_what_is_not_private_has_no_epsilon() -> None:
    for event in (NonPrivate("said so"), Composed((Gaussian(9.0), NonPrivate("said so")))):
        assert Guarantee(event).epsilon(0.5) == math.inf
        assert Guarantee(event).delta(100.0) == 1.0


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0])
def test_a_concentrated_promise_covers_the_gaussian_that_keeps_it(rho: float) -> None:
    gaussian = Gaussian(1 / math.sqrt(2 * rho))
    orders = np.array([1.5, 2.0, 10.0, 100.0])
    np.testing.assert_allclose(ZeroConcentrated(rho).renyi(orders), gaussian.renyi(orders))
    for delta in (1e-2, 1e-6):
        exact, claimed = (Guarantee(e).epsilon(delta) for e in (gaussian, ZeroConcentrated(rho)))
        assert exact <= claimed <= 1.3 * exact + 0.05
