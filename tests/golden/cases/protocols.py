"""Local privacy between clients and a server, sanitizers alone, learners, and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.images import ScatteringClassifier
from tacit.local import (
    Absolute,
    Agreement,
    Banco,
    Client,
    Distance,
    GaussianNoise,
    GradientDescent,
    HalfSphere,
    Hinge,
    Huber,
    LocalLogisticRegression,
    LocalRegressor,
    Logistic,
    PosterBanco,
    PrivUnit,
    Server,
    SphereNoise,
)
from tacit.noise import seeded_source
from tests.declared import PROBLEMS
from tests.golden.pinning import SEED, Case, Pins, encoded, event_pins, pinned, unheard

D = 3
SANITIZERS: dict[str, Callable[[], Any]] = {
    "sphere": lambda: SphereNoise(2.0, D),
    "half_sphere": lambda: HalfSphere(2.0, D),
    "priv_unit": lambda: PrivUnit(2.0, D),
    "gaussian": lambda: GaussianNoise(2.0, 1e-5, D),
}
LOSSES: dict[str, Callable[[], Any]] = {
    "logistic": Logistic,
    "hinge": Hinge,
    "absolute": Absolute,
    "huber": Huber,
    "distance": Distance,
}


def _sanitized(make: Callable[[], Any]) -> Case:
    def case() -> Pins:
        law = make()
        vectors = np.random.default_rng(1).standard_normal((6, D))
        vectors /= 1.01 * np.linalg.norm(vectors, axis=1, keepdims=True)
        sent = law.sanitize_batch(vectors, seeded_source(SEED))
        one = law.sanitize(vectors[0], seeded_source(SEED + 1))
        return {
            "event": event_pins(sent.event),
            "released": {"batch": encoded(sent.value), "one": encoded(one.value)},
        }

    return case


def _exchanged(make: Callable[[], Any], loss: Callable[[], Any], learner: type[Any]) -> Case:
    def case() -> Pins:
        law = make()
        agreed = Agreement(loss(), law)
        server = Server(learner(law.tail, law.norm), agreed)
        rng = np.random.default_rng(2)
        for number in range(12):
            label = float(rng.choice([-1.0, 1.0]))
            row = rng.normal(size=agreed.n_columns) + label
            token = number.to_bytes(16, "little")
            source = seeded_source(SEED + number)
            client = Client(row, label, agreed, source=source, token=token)
            server.receive(client.answer(server.question()))
        return {
            "event": event_pins(server.privacy.event),
            "released": {
                "estimate": encoded(server.estimate),
                "state": encoded(server.state),
            },
        }

    return case


def _learned(of: type[Any], problem: str, learner: Any, **told: Any) -> Case:
    def case() -> Pins:
        _, example = PROBLEMS[problem]
        model = of(2.0, learner=learner, random_state=SEED, **{**example.parameters, **told})
        half = len(example.rows) // 2
        labels: Any = example.labels
        model.fit(example.rows[:half], labels[:half])
        model.partial_fit(example.rows[half:], labels[half:])
        return pinned(model)

    return unheard(case)


def _images(shape: tuple[int, ...], **told: Any) -> Case:
    def case() -> Pins:
        rng = np.random.default_rng(0)
        images, across = rng.uniform(0, 0.3, (40, *shape)), rng.uniform(size=40) < 0.5
        images[across, :, ::2] += 0.6
        rows = images.reshape(40, -1)
        model = ScatteringClassifier(
            3.0, 1e-5, image_shape=shape, classes=[False, True], random_state=SEED, **told
        )
        model.fit(rows, across)
        made = pinned(model, decided=model.decision_function(rows)[:8])
        # the first of many coefficients, and what all of them amount to
        made["released"]["coef_"] = encoded(
            [*model.coef_.ravel()[:24].tolist(), float(np.abs(model.coef_).sum())]
        )
        return made

    return case


def cases() -> dict[str, Case]:
    """Return all of them by name."""
    made = {f"sanitizer-{name}": _sanitized(make) for name, make in SANITIZERS.items()}
    for name, make in SANITIZERS.items():
        made[f"protocol-{name}"] = _exchanged(make, Logistic, Banco)
    for name, loss in LOSSES.items():
        made[f"loss-{name}"] = _exchanged(SANITIZERS["priv_unit"], loss, Banco)
    made["protocol-poster"] = _exchanged(SANITIZERS["sphere"], Logistic, PosterBanco)
    descent = GradientDescent(rate=0.1)
    made["descent-logistic"] = _learned(LocalLogisticRegression, "local_logistic-binary", descent)
    made["descent-number"] = _learned(LocalRegressor, "local_regressor-number", descent)
    made["partly-logistic"] = _learned(LocalLogisticRegression, "local_logistic-binary", "banco")
    made["partly-plain"] = _learned(
        LocalLogisticRegression, "local_logistic-binary", "banco", fit_intercept=False
    )
    made["images"] = _images((4, 8))
    made["images-mirrored"] = _images((4, 8), mirrored=True)
    return made
