"""Files that tacit 0.1.0 wrote, kept to be read by every later version.

``python -m tests.golden.kept`` writes those that are missing, and never one that is there: what was
written once must keep loading. Beside the files, ``expected.json`` says what they hold.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.features import GaussianKernel, RandomFourierFeatures, SplineFeatures
from tacit.linear_model import LinearRegression, LogisticRegression
from tacit.pate import PATEClassifier, PATERegressor, SemiSupervised
from tacit.pipeline import PrivatePipeline
from tacit.schema import SchemaEncoder
from tests.declared import PROBLEMS, fit, made
from tests.golden.cases import tables
from tests.golden.pinning import encoded, event_pins, is_plain
from tests.saving.helpers import FITS, FRAME, PEOPLE, X

FOLDER = Path(__file__).parent / "kept"
EXPECTED = FOLDER / "expected.json"

# Of the models that the tests of saving fit, those whose files differ in kind.
_MODELS = (
    *("logistic", "softmax_words", "logistic_no_budget", "logistic_seeded", "softmax_balanced"),
    *("logistic_errors", "table_errors", "svc", "linear", "linear_moments", "ridge", "huber"),
    *("quantile", "poisson", "mean", "mean_no_budget", "median", "geometric_median"),
    *("table", "table_float32", "pipeline", "kernel_logistic-binary", "kernel_ridge-number"),
)


def _private(*steps: tuple[str, Any], estimator: Any = None, **told: Any) -> Any:
    last = LogisticRegression(classes=[False, True]) if estimator is None else estimator
    model = PrivatePipeline([*steps, ("model", last)], 4.0, 1e-3, **told)
    gaps = any(name == "missing" for name, _ in steps)
    return model.fit(tables._gaps() if gaps else tables.numbers(), tables.labels())


def _pipelines() -> dict[str, Callable[[], Any]]:
    scale = ("scale", tables.STEPS["standard_scaler"]())
    made: dict[str, Callable[[], Any]] = {
        f"private_{name}": lambda name=name: _private((name, tables.STEPS[name]()))
        for name in ("quantile_bounds", "missing", "pca")
    }
    for name, step in {
        "waves": RandomFourierFeatures(GaussianKernel(1.5), 3, seed=1),
        "splines": SplineFeatures(4, 2),
    }.items():
        made[f"private_{name}"] = lambda name=name, step=step: _private(scale, (name, step))
    made["private_held_out"] = lambda: _private(scale, evaluate=0.4)

    def of_people(schema: Any, estimator: Any, **told: Any) -> Any:
        steps = [("encode", SchemaEncoder(schema)), ("model", estimator)]
        return PrivatePipeline(steps, 4.0, 1e-3, **told).fit(tables.people())

    made["private_open"] = lambda: of_people(tables.OPEN, LogisticRegression(), evaluate=0.3)
    made["private_numbers"] = lambda: of_people(tables.COST, LinearRegression(), evaluate=0.4)
    return made


def _students() -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LinearRegression as Line
    from sklearn.linear_model import LogisticRegression as Logistic
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    students: dict[str, Any] = {
        "spread": SemiSupervised(n_rounds=1),
        "line": Logistic(),
        "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
        "forest": RandomForestClassifier(3, max_depth=2, random_state=0),
        "boosted": GradientBoostingClassifier(n_estimators=3, max_depth=1, random_state=0),
    }
    rows, words = tables.numbers(), np.where(tables.labels(), "yes", "no")
    pool = np.random.default_rng(6).standard_normal((20, 3))

    def student(of: Any) -> Any:
        model = PATEClassifier(GaussianNB(), 12, of, 10, 8.0, 1e-5, classes=["no", "yes"])
        return model.fit(rows, words, pool)

    def numbers() -> Any:
        model = PATERegressor(Line(), 12, Line(), 10, 8.0, 1e-5, label_range=(-3.0, 3.0))
        return model.fit(rows, rows @ [1.0, -1.0, 0.5], pool)

    made = {f"student_{name}": lambda of=of: student(of) for name, of in students.items()}
    return {**made, "student_numbers": numbers}


def _networks() -> dict[str, Callable[[], Any]]:
    from tacit.registry import ELSEWHERE, spec_elsewhere

    def network(kind: str) -> Any:
        spec = spec_elsewhere(kind)
        assert spec is not None
        example = spec.examples()[0]
        return fit(made(spec, example), example.rows, example.labels)

    return {kind: lambda kind=kind: network(kind) for kind in ELSEWHERE}


def models() -> Mapping[str, Callable[[], Any]]:
    """Return what fits each model that is kept, by the name of its file."""
    chosen = {name: FITS[name] for name in _MODELS}
    return {**chosen, **_pipelines(), **_students(), **_networks()}


def asked(name: str) -> Any:
    """Return the rows that a kept model is asked about."""
    if name.startswith(("table", "pipeline")):
        return PEOPLE.iloc[:8]
    if name in ("private_open", "private_numbers"):
        return {column: values[:8] for column, values in tables.people().items()}
    if name == "private_missing":
        return tables._gaps()[:8]
    if name == "scattering_classifier":
        from tacit.registry import spec_elsewhere

        spec = spec_elsewhere(name)
        assert spec is not None
        return spec.examples()[0].rows[:8]
    if name in PROBLEMS:
        return PROBLEMS[name][1].rows[:8]
    if name in ("linear", "softmax_words", "softmax_balanced"):
        return FRAME.iloc[:8]
    return X[:8] if name in FITS else tables.numbers()[:8]


def content(name: str, model: Any) -> dict[str, Any]:
    """Return what a model says: what it releases, predicts and promises."""
    own = getattr(model, "estimator_", model)
    own = own[-1] if hasattr(own, "named_steps") else own
    released = {
        key: encoded(value)
        for key, value in sorted(vars(own).items())
        if key.endswith("_") and key[0] != "_" and is_plain(value)
    }
    found: dict[str, Any] = {"kind": type(model).__name__, "released": released}
    if hasattr(model, "predict"):
        found["predicted"] = encoded(model.predict(asked(name)))
    if getattr(model, "evaluation_", None) is not None:
        metrics = model.evaluation_.metrics.items()
        found["evaluation"] = {key: encoded(each.value) for key, each in metrics}
    promise = model.privacy_
    delta = promise.target_delta or 0.0
    return {**found, "event": event_pins(promise.event), "epsilon": encoded(promise.epsilon(delta))}


def main() -> None:
    """Write what is missing, and what is expected of it."""
    from tests.golden import kept_others

    FOLDER.mkdir(exist_ok=True)
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in models().items():
            path = FOLDER / f"{name}.tacit"
            if not path.exists():
                model = make()
                tacit.save(model, path)
                loaded = tacit.load(path)
                if hasattr(model, "predict"):
                    rows = asked(name)
                    assert np.array_equal(model.predict(rows), loaded.predict(rows)), name
                expected[path.name] = content(name, loaded)
                sys.stdout.write(f"wrote {path.name}, {path.stat().st_size} bytes\n")
        for name, write in kept_others.WRITERS.items():
            if not any(FOLDER.glob(f"{name}*")):
                place = Path(folder) / name
                place.mkdir()
                write(place)
                for file in sorted(place.iterdir()):
                    shutil.copyfile(file, FOLDER / file.name)
                    sys.stdout.write(f"wrote {file.name}, {file.stat().st_size} bytes\n")
                expected |= kept_others.READERS[name](place)
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(expected.items())]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
