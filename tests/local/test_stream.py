"""One loop for people, compiled or not, with the same result to the last bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.local import (
    Absolute,
    Banco,
    Distance,
    GaussianNoise,
    GradientDescent,
    HalfSphere,
    Hinge,
    Huber,
    Learner,
    Logistic,
    PosterBanco,
    PrivUnit,
    Sanitizer,
    SphereNoise,
    SumOfDistances,
)
from tacit.local.sanitizers.additive import NoNoise
from tacit.local.stream import learn, learn_prepared
from tacit.noise import secure_source, seeded_source

N, D = 400, 4


def people(seed: int = 0, n: int = N) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)


LOSSES = [Logistic(), Hinge(), Absolute(), Huber(0.5), Distance(), SumOfDistances()]
SANITIZERS = [PrivUnit, HalfSphere, SphereNoise]


def sanitizer_for(loss: Any, kind: Any) -> Sanitizer:
    norm = loss.norm(D, 1.0)
    made: Sanitizer = kind(2.0, D, norm)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "kind", "make"),
    [
        (LOSSES[0], PrivUnit, lambda s: Banco(s.tail, s.norm)),
        (LOSSES[2], SphereNoise, lambda s: GradientDescent(0.1)),
        # each compiles another loop
        pytest.param(
            LOSSES[1],
            HalfSphere,
            lambda s: PosterBanco(s.tail, s.norm),
            marks=pytest.mark.slow,
        ),
        pytest.param(LOSSES[4], PrivUnit, lambda s: Banco(s.tail, s.norm), marks=pytest.mark.slow),
    ],
)
def test_compiled_equals_python(loss: Any, kind: Any, make: Any) -> None:
    pytest.importorskip("numba")
    rows, labels = people()
    sanitizer = sanitizer_for(loss, kind)
    learner: Learner = make(sanitizer)
    ends = [
        learn(
            learner,
            learner.init(D),
            rows,
            labels,
            loss,
            sanitizer,
            seeded_source(5),
            compile_it=compiled,
        )
        for compiled in (False, True)
    ]
    for slow, fast in zip(*ends, strict=True):
        np.testing.assert_array_equal(slow, fast)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
@pytest.mark.parametrize("kind", SANITIZERS, ids=lambda kind: kind.kind)
def test_the_loop_is_clients_and_a_learner(loss: Any, kind: Any) -> None:
    rows, labels = people(n=50)
    sanitizer = sanitizer_for(loss, kind)
    learner = Banco(sanitizer.tail, sanitizer.norm)
    source = seeded_source(1)
    prepared = sanitizer.prepare(len(rows), source)
    given = learner, learner.init(D), rows, labels, loss, sanitizer, prepared
    whole = learn_prepared(*given, compile_it=False)
    state = learner.init(D)
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        pull = loss.pull(state.point, row, label, loss.width)
        assert np.linalg.norm(pull) <= sanitizer.norm * (1 + 1e-12)
        steps = prepared.exactly(i, pull, sanitizer.norm)
        state = learner.update(state, steps * sanitizer.spacing)
    assert whole.n_reports == 50
    np.testing.assert_array_equal(whole.point, state.point)
    np.testing.assert_array_equal(whole.estimate, state.estimate)


def test_a_pull_beyond_the_norm_is_clipped() -> None:
    # Rows twice as long as agreed: without the clip NoNoise would report them whole.
    sanitizer, learner = NoNoise(D, 1.0), GradientDescent(1.0, decay=0.0)
    rows = np.zeros((1, D))
    rows[0, 0] = 2.0
    state = learn(
        learner, learner.init(D), rows, np.array([9.0]), Absolute(), sanitizer, secure_source()
    )
    np.testing.assert_allclose(state.point, [1.0, 0, 0, 0], rtol=2e-9)


def test_rows_that_floats_cannot_decide_are_decided_exactly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, labels = people(n=40)
    sanitizer = PrivUnit(2.0, D)
    learner = Banco(sanitizer.tail)
    arguments = (rows, labels, Logistic(), sanitizer)
    plain = learn(learner, learner.init(D), *arguments, seeded_source(3))
    prepare = PrivUnit.prepare

    def undecided(self: PrivUnit, n: int, source: Any) -> Any:
        prepared = prepare(self, n, source)
        prepared.margins[::3] = math.inf
        return prepared

    monkeypatch.setattr(PrivUnit, "prepare", undecided)
    exact = learn(learner, learner.init(D), *arguments, seeded_source(3))
    for a, b in zip(plain, exact, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_exact_path_hides_the_loops_own_value() -> None:
    # A loss whose pull differs each time it is computed, as a corner's may between two BLAS.
    calls = []

    class Fickle:
        kind, width = "fickle", 0.0

        @staticmethod
        def pull(point: Any, features: Any, label: float, width: float) -> Any:  # noqa: ARG004
            calls.append(1)
            return features

        def norm(self, n_features: int, row_norm: float) -> float:
            return row_norm

    sanitizer = PrivUnit(2.0, D)
    learner = GradientDescent(1.0)
    rows, labels = people(n=10)
    prepared = sanitizer.prepare(10, seeded_source(0))
    prepared.margins[:] = math.inf
    given = learner, learner.init(D), rows, labels, Fickle(), sanitizer, prepared
    learn_prepared(*given, compile_it=False)
    assert len(calls) == 10


@pytest.mark.parametrize("kind", [PrivUnit, HalfSphere])
def test_caps_take_any_norm(kind: Any) -> None:
    for norm in (2.0**-190, 2.0**40, 4e59):
        value = np.full(D, norm / 2)
        report = kind(1.0, D, norm).sanitize(value).value
        assert np.linalg.norm(report) == pytest.approx(
            kind(1.0, D, norm).rms_norm, rel=1e-5, abs=0.0
        )


def test_gaussian_reports_are_learned_from() -> None:
    sanitizer = GaussianNoise(2.0, 1e-6, D)
    learner = Banco(sanitizer.tail)
    rows, labels = people(n=300)
    state = learn(learner, learner.init(D), rows, labels, Logistic(), sanitizer, secure_source())
    assert state.n_reports == 300
    assert np.all(np.isfinite(state.estimate))
