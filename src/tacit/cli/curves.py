"""Measure scores by epsilon and mechanism on public records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.cli import output
from tacit.cli.models import MODELS, make_estimator
from tacit.cli.running import Refused, before_records
from tacit.erm import CannotSolve
from tacit.erm.minimization import CANDIDATES, MECHANISMS
from tacit.registry import ACCURACY, AUC, BALANCED_ACCURACY, ModelSpec, Score
from tacit.report import AccuracyPicture, AccuracyPoint
from tacit.schema import ClassTarget, Schema, encode_table

_SPLIT_SEED = 0
_HEADER = ("model", "target", "score", "mechanism", "epsilon", "mean", "sd", "ceiling", "floor")
# If the commonest class is at least this many times as frequent as the rarest, a constant answer
# has a high accuracy, so another score is used.
_UNEVEN = 2
_RULES = {
    ACCURACY.name: "Score: accuracy. The commonest class is less than twice as "
    "frequent as the rarest.",
    AUC.name: "Score: AUC (0.5 is guessing, 1 is a perfect ranking). The commonest "
    "class is at least twice as frequent as the rarest, so a constant answer would have a high "
    "accuracy.",
    BALANCED_ACCURACY.name: "Score: balanced accuracy (recall averaged over the classes). "
    "The commonest class is at least twice as frequent as the rarest, so a constant answer would "
    "have a high accuracy.",
}
_ONE_CLASS = "Score: accuracy. It says little: all test records are of one class."
_SCORES = (ACCURACY, AUC, BALANCED_ACCURACY, *(spec.score for spec in MODELS.values()))
FLOORS = {score.name: score.floor for score in _SCORES if score is not None}


@dataclass(frozen=True)
class Curves:
    """Scores of one model, between a constant answer (floor) and no privacy (ceiling)."""

    model: str
    target: str
    score: str
    floor: float
    ceiling: float
    points: tuple[AccuracyPoint, ...]
    rule: str = ""  # the reason for the choice of score

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and dictionaries."""
        return {**vars(self), "points": [vars(point) for point in self.points]}


@dataclass(frozen=True)
class Settings:
    """Budgets, mechanisms and repeats to try."""

    epsilons: tuple[float, ...]
    delta: float
    mechanisms: tuple[str, ...]
    repeats: int
    relation: str = "add_remove"
    quantile: float | None = None

    @property
    def n_fits(self) -> int:
        """Number of fits of `measured`, including the fit without privacy."""
        return 1 + len(self.epsilons) * len(self.mechanisms) * self.repeats


def split(table: Any, test_share: float) -> tuple[Any, Any]:
    """Split a table into training and test records."""
    n = table.num_rows
    n_test = round(n * test_share)
    if not 0 < n_test < n:
        raise Refused(
            "there are too few records to split into training and test records; give more, or "
            "change --test."
        )
    order = np.random.default_rng(_SPLIT_SEED).permutation(n)
    return table.take(order[n_test:]), table.take(order[:n_test])


def measured(
    kind: ModelSpec,
    schema: Schema,
    table: Any,
    settings: Settings,
    test_share: float,
    step: Callable[[], None],
) -> Curves:
    """Return the scores of a model with each mechanism at each epsilon.

    ``settings`` names only mechanisms that apply. ``step`` is called after each fit.
    """
    train, test = split(table, test_share)
    people: list[Any] | None = None if schema.unit is None else []
    rows, labels = encode_table(train, schema, identifiers=people)
    test_rows, test_labels = encode_table(test, schema)
    if not len(rows) or not len(test_rows):
        raise Refused(
            "no record has a target value that the schema declares; check the target's classes."
        )
    judge, rule = _score(kind, schema, labels, test_labels)

    def score(epsilon: float, mechanism: str) -> float:
        fitted = _estimator(kind, schema, epsilon, mechanism, settings)
        fitted.fit(rows, labels, unit=people)
        step()
        return judge.of(fitted, test_rows, test_labels)

    points = []
    for mechanism in settings.mechanisms:
        for epsilon in settings.epsilons:
            scores = [score(epsilon, mechanism) for _ in range(settings.repeats)]
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            points.append(AccuracyPoint(mechanism, epsilon, statistics.fmean(scores), spread))
    assert schema.target is not None
    floor = _floor(judge, labels, test_labels)
    ceiling = score(math.inf, "auto")
    return Curves(kind.word, schema.target.name, judge.name, floor, ceiling, tuple(points), rule)


def which_apply(
    kind: ModelSpec, schema: Schema, settings: Settings
) -> tuple[Settings, dict[str, str]]:
    """Return settings with the mechanisms that apply, and why the others do not.

    If the settings name no mechanism, all are tried.
    """
    for name in settings.mechanisms:
        if name not in (*MECHANISMS, "auto"):
            raise Refused(
                f"--mechanism {name!r} is unknown; choose from auto, {', '.join(MECHANISMS)}."
            )
    usable, refused = [], {}
    for name in settings.mechanisms or CANDIDATES:
        try:
            with before_records():
                for epsilon in settings.epsilons:
                    estimator = _estimator(kind, schema, epsilon, name, settings)
                    estimator.plan(len(schema.feature_names))
            usable.append(name)
        except Refused as why:
            if not isinstance(why.__cause__, CannotSolve):
                raise
            refused[name] = str(why)
    if not usable:
        raise Refused(f"no mechanism applies: {' '.join(refused.values())}")
    return replace(settings, mechanisms=tuple(usable)), refused


def _estimator(
    kind: ModelSpec, schema: Schema, epsilon: float, mechanism: str, settings: Settings
) -> Any:
    return make_estimator(
        kind,
        epsilon,
        settings.delta,
        mechanism=mechanism,
        relation=settings.relation,
        quantile=settings.quantile,
        **schema.facts.parameters(),
    )


def _score(
    kind: ModelSpec, schema: Schema, train: npt.NDArray[Any], test: npt.NDArray[Any]
) -> tuple[Score, str]:
    """Choose the score of a model and the reason; for classes, by their balance."""
    if not isinstance(schema.target, ClassTarget):
        assert kind.score is not None, "an offered model is judged"
        return kind.score, ""
    if len(np.unique(test)) == 1:
        return ACCURACY, _ONE_CLASS
    counts = [int(np.sum(train == c) + np.sum(test == c)) for c in schema.target.labels]
    if max(counts) < _UNEVEN * min(counts):
        return ACCURACY, _RULES[ACCURACY.name]
    chosen = AUC if len(counts) == 2 else BALANCED_ACCURACY
    return chosen, _RULES[chosen.name]


def _floor(score: Score, train: npt.NDArray[Any], test: npt.NDArray[Any]) -> float:
    """Return the score of the best constant answer."""
    if score is ACCURACY:
        words, counts = np.unique(train, return_counts=True)
        return float(np.mean(test == words[counts.argmax()]))
    # A constant answer has recall 1 for one class and 0 for the others.
    known = {AUC.name: 0.5, BALANCED_ACCURACY.name: 1.0 / len(np.unique(test))}
    return known.get(score.name, 0.0)


def show(curves: Sequence[Curves]) -> None:
    """Print a table of scores: a row per mechanism, a column per epsilon."""
    if not output.is_watched():
        output.table(
            "", _HEADER, [_line(curve, point) for curve in curves for point in curve.points]
        )
        return
    for curve in curves:
        epsilons = list(dict.fromkeys(point.epsilon for point in curve.points))
        rows = []
        for mechanism in dict.fromkeys(point.mechanism for point in curve.points):
            at = [point for point in curve.points if point.mechanism == mechanism]
            rows.append([mechanism, *map(_cell, at)])
        title = (
            f"{curve.model}: {curve.score} for {curve.target}; without privacy "
            f"{curve.ceiling:.3f}, {FLOORS[curve.score]} {curve.floor:.3f}"
        )
        output.table(title, ["", *(f"epsilon {e:g}" for e in epsilons)], rows)


def _cell(point: AccuracyPoint) -> str:
    return f"{point.mean:.3f}±{f'{point.sd:.3f}'.removeprefix('0')}"


def _line(curve: Curves, point: AccuracyPoint) -> list[str]:
    numbers = (point.epsilon, point.mean, point.sd, curve.ceiling, curve.floor)
    names = (curve.model, curve.target, curve.score, point.mechanism)
    return [*names, *(f"{number:.6g}" for number in numbers)]


def picture_of(curves: Curves, why_public: str) -> AccuracyPicture:
    """Return the scores as a report shows them."""
    return AccuracyPicture(
        curves.points,
        why_public,
        score=curves.score,
        floor=curves.floor,
        ceiling=curves.ceiling,
        floor_name=FLOORS[curves.score],
    )
