"""Losses and mechanisms declare; nobody asks for their type, nor recognises one by its name."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.erm import Mechanism
from tacit.erm.losses import LOSSES, AnyLoss, Loss, PointLoss
from tacit.erm.minimization import KINDS

SOURCE = Path(tacit.__file__).parent
LOSS_KINDS: list[type[Any]] = [*LOSSES.values(), AnyLoss, Loss, PointLoss]
MECHANISM_KINDS: list[type[Any]] = [*KINDS.values(), Mechanism]
LOSS_NAMES = {kind.__name__ for kind in LOSS_KINDS}
MECHANISM_NAMES = {kind.__name__ for kind in MECHANISM_KINDS}
MECHANISMS_HOME = SOURCE / "erm" / "mechanisms" / "__init__.py"  # the registry finds them
OWN_MODULES = {MECHANISMS_HOME, *(Path(inspect.getfile(kind)) for kind in KINDS.values())}
# Losses of its own, written for numba, are questioned there.
ELSEWHERE = SOURCE / "local"
LOSSES_HOME = SOURCE / "erm" / "losses"


def last_word(node: ast.AST) -> str:
    return {ast.Name: lambda: node.id, ast.Attribute: lambda: node.attr}.get(  # type: ignore[attr-defined]
        type(node), lambda: ""
    )()


def mentions(node: ast.AST, names: set[str]) -> bool:
    return any(last_word(part) in names for part in ast.walk(node))


def asks(node: ast.AST, names: set[str], subjects: set[str]) -> bool:
    """Return whether a node is a question after the type of a subject, or of these names."""
    if isinstance(node, ast.Call) and node.args:
        asked, first = last_word(node.func), last_word(node.args[0])
        if asked in ("isinstance", "issubclass"):
            return any(mentions(kinds, names) for kinds in node.args[1:])
        if asked in ("hasattr", "getattr") and first in subjects:
            return not ast.unparse(node.args[1]).startswith("'__dataclass")
        return asked == "type" and first in subjects
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__" and last_word(node.value) in subjects
    if isinstance(node, ast.MatchClass):
        return mentions(node.cls, names)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        labels = [s for s in sides if isinstance(s, ast.Attribute) and s.attr in ("name", "key")]
        by_name = any(last_word(label.value) in names | subjects for label in labels)
        return by_name or any(mentions(side, names) for side in sides)
    return False


def in_messages(tree: ast.AST) -> set[ast.AST]:
    """Return the calls of ``type(loss).__name__`` that are there to be read in a message."""
    texts = [
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    ]
    return {t.value for t in texts if isinstance(t, ast.Attribute) and t.attr == "__name__"}


def questions(code: str, names: set[str], subjects: set[str]) -> list[str]:
    tree = ast.parse(code)
    read = in_messages(tree)
    found = [n for n in ast.walk(tree) if n not in read and asks(n, names, subjects)]
    return [ast.unparse(node) for node in found]


def found_in(source: Path) -> set[tuple[str, str]]:
    found = set()
    for path in sorted(source.rglob("*.py")):
        place = SOURCE / path.relative_to(source)
        if place.is_relative_to(LOSSES_HOME) or place.is_relative_to(ELSEWHERE):
            continue
        names, subjects = LOSS_NAMES, {"loss"}
        if place not in OWN_MODULES:
            names, subjects = names | MECHANISM_NAMES, subjects | {"mechanism"}
        asked = questions(path.read_text(encoding="utf-8"), names, subjects)
        found |= {(str(path.relative_to(source)), question) for question in asked}
    return found


def test_nobody_asks_for_the_type_of_a_loss_or_a_mechanism() -> None:
    assert found_in(SOURCE) == set()


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(objective.loss, SoftmaxLoss)",
        "isinstance(x, erm.NoisyGradient | NoisySGD)",
        "issubclass(kind, PointLoss)",
        "type(plan.mechanism) is Other",
        "x is HingeLoss",
        "kind in (SquaredLoss, HuberLoss)",
        "f'{type(loss)}'",
        "type(self.loss).__name__ == 'HingeLoss'",
        "loss.__class__",
        "loss.key == 'softmax'",
        "name != NoisySGD.name",
        "plan.mechanism.name in ('noisy_sgd',)",
        "hasattr(loss, 'n_classes')",
        "getattr(objective.loss, 'level', None)",
        "match x:\n    case QuantileLoss(level=q): pass",
    ],
)
def test_a_question_is_found(question: str) -> None:
    assert questions(question, LOSS_NAMES | MECHANISM_NAMES, {"loss", "mechanism"})


@pytest.mark.parametrize(
    "answer",
    [
        "isinstance(mechanism, str)",
        "objective.loss.level is None",
        "f'{type(objective.loss).__name__} has no bounded slope'",
        "HingeLoss()",
        "kind.name == 'svc'",
        "type(estimator)()",
        "name in MECHANISMS",
    ],
)
def test_what_is_no_question_is_not(answer: str) -> None:
    assert not questions(answer, LOSS_NAMES | MECHANISM_NAMES, {"loss", "mechanism"})
