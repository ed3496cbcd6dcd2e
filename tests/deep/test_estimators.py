"""Networks as estimators: scikit-learn's checks, plans, files, and what they refuse."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import tacit
from tacit.deep import AutomaticClip, NeuralClassifier, NeuralRegressor
from tacit.deep.neural_network import NETWORKS
from tacit.estimators.parameters import DECLARED_CLASSES
from tacit.privacy import Accountant, Budget, BudgetExceeded
from tacit.registry import ELSEWHERE, NAMES, ModelSpec, Predicts, spec_of
from tacit.saving import CannotSave, NotAModel
from tacit.saving.container import pack, unpack
from tacit.testing import replay
from tests.declared import fit, made

KNOWN: dict[str, Any] = {
    "epsilon": 300.0,
    "delta": 1e-3,
    "random_state": 0,
    "n_records": "infer",
    "n_steps": 60,
    "hidden": (8,),
    "clip": 1.0,
    "learning_rate": 0.3,
}


def smallest(spec: ModelSpec) -> Any:
    own = {"classes": "infer"} if spec.predicts is Predicts.CLASSES else {"label_range": "infer"}
    return made(spec, **KNOWN, **own)


@pytest.mark.slow
@parametrize_with_checks([smallest(spec) for spec in NETWORKS])
def test_sklearn_compatible(estimator: Any, check: Any) -> None:
    check(estimator)


def fitted(spec: ModelSpec, **told: Any) -> tuple[Any, Any]:
    example = spec.examples()[0]
    return fit(made(spec, example, **told), example.rows, example.labels), example.rows


@pytest.mark.parametrize("spec", NETWORKS, ids=lambda spec: spec.word)
class TestDeclared:
    def test_what_is_declared_is_so(self, spec: ModelSpec) -> None:
        model = spec.model()
        assert spec.kind in ELSEWHERE
        assert spec_of(model) is spec
        assert is_classifier(model) == (spec.predicts is Predicts.CLASSES)
        assert is_regressor(model) == (spec.predicts is Predicts.NUMBERS)

    def test_a_fit_leaves_what_is_declared_and_nothing_else(self, spec: ModelSpec) -> None:
        example = spec.examples()[0]
        frame = pd.DataFrame(example.rows, columns=["a", "b", "c"])
        for rows, names in ((example.rows, set()), (frame, {NAMES})):
            model = fit(made(spec, example), rows, example.labels)
            left = set(vars(model)) - set(model.get_params(deep=False))
            assert left == (set(spec.released) - {NAMES, DECLARED_CLASSES}) | names | {
                "privacy_",
                "plan_",
            }

    def test_files(self, spec: ModelSpec, tmp_path: Path) -> None:
        model, rows = fitted(spec, accountant=Accountant(Budget(9.0, 1e-3)), hidden=[5, 4])
        tacit.save(model, tmp_path / "model.tacit")
        again = tacit.load(tmp_path / "model.tacit")
        assert type(again) is type(model)
        assert np.array_equal(again.predict(rows), model.predict(rows))
        assert again.privacy_ == model.privacy_
        assert again.plan_ == model.plan_
        assert again.accountant is None
        assert again.epsilon_by_epoch() == model.epsilon_by_epoch()

    def test_a_changed_file_is_refused(self, spec: ModelSpec, tmp_path: Path) -> None:
        model, _ = fitted(spec)
        for broken in (
            model.weights_[:-1],
            model.weights_ * np.float32(np.nan),
            model.weights_.astype(float),
        ):
            model.weights_ = broken
            with pytest.raises(CannotSave, match="weights"):
                tacit.save(model, tmp_path / "model.tacit")
        model, _ = fitted(spec)
        tacit.save(model, tmp_path / "model.tacit")
        members = dict(unpack((tmp_path / "model.tacit").read_bytes()))
        record = json.loads(members["model.json"])
        record["parameters"]["network"] = "os.system"
        members["model.json"] = json.dumps(record).encode()
        (tmp_path / "other.tacit").write_bytes(pack(members))
        with pytest.raises(NotAModel):
            tacit.load(tmp_path / "other.tacit")

    def test_replay(self, spec: ModelSpec) -> None:
        example = spec.examples()[0]
        more = np.vstack([example.rows, [[1e6, 3e5, -1e6]]])
        assert example.labels is not None
        other = np.append(example.labels, example.odd[0])
        told = {"batch_size": 60}  # all records at every step: words that sample cannot be replayed
        torch.manual_seed(0)
        start = nn.Linear(3, 2 if spec.predicts is Predicts.CLASSES else 1).state_dict()

        def network(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
            module = nn.Linear(*shape, n_outputs)
            module.load_state_dict(start)
            return module

        model = made(spec, example, network=network, **told)
        assert (
            replay(lambda data: fit(model, *data), (example.rows, example.labels), (more, other))
            == 5
        )
        assert (
            replay(lambda data: fit(model, *data), (more, other), (example.rows, example.labels))
            == 5
        )

    def test_plans_and_accountants(self, spec: ModelSpec) -> None:
        example = spec.examples()[0]
        accountant = Accountant(Budget(1.0, 1e-5))
        model = made(spec, example, accountant=accountant)
        plan = model.plan(3)
        fit(model, example.rows, example.labels)
        assert model.plan_ == plan
        assert accountant.events == (plan.event,)
        assert model.privacy_.epsilon(model.delta) <= 1.0
        with pytest.raises(BudgetExceeded):
            fit(made(spec, example, accountant=accountant), example.rows, example.labels)

    def test_refusals(self, spec: ModelSpec) -> None:
        example = spec.examples()[0]
        told: dict[str, tuple[dict[str, Any], type[Exception]]] = {
            "declare n_records": ({"n_records": None}, ValueError),
            "network must be one of": ({"network": "transformer"}, ValueError),
            "returned a int": ({"network": lambda shape, n: 3}, TypeError),
            "images of at least 16": ({"network": "cnn"}, ValueError),
            "image_shape": ({"image_shape": (1, 2, 2)}, ValueError),
            "momentum": ({"momentum": 1.0}, ValueError),
            "learning_rate": ({"learning_rate": 0.0}, ValueError),
            "needs delta": ({"delta": 0.0}, ValueError),
            "'add_remove' only": ({"relation": "replace"}, ValueError),
        }
        for words, (wrong, error) in told.items():
            with pytest.raises(error, match=words):
                fit(made(spec, example, **wrong), example.rows, example.labels)
        rows = example.rows.copy()
        rows[3, 1] = math.nan
        with pytest.raises(ValueError, match="NaN"):
            fit(made(spec, example), rows, example.labels)

    def test_a_clip_may_be_any(self, spec: ModelSpec) -> None:
        model, rows = fitted(spec, clip=AutomaticClip(0.2))
        assert model.plan_.settings["clip"] == 0.2
        assert len(model.predict(rows)) == len(rows)

    def test_a_network_of_ones_own(self, spec: ModelSpec, tmp_path: Path) -> None:
        def own(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
            return nn.Sequential(nn.Linear(*shape, 6), nn.LayerNorm(6), nn.Linear(6, n_outputs))

        model, rows = fitted(spec, network=own)
        assert model.predict(rows).shape == (60,)
        assert isinstance(model.module(), nn.Sequential)
        with pytest.raises(CannotSave, match="network"):
            tacit.save(model, tmp_path / "model.tacit")


def test_a_class_that_is_not_declared_does_not_count() -> None:
    rows = np.random.default_rng(0).standard_normal((80, 3))
    labels = np.where(rows[:, 0] > 0, "a", "b").astype(object)
    labels[5] = None
    labels[6] = "a class of its own"
    model = NeuralClassifier(classes=["a", "b"], n_records=80, n_steps=3).fit(rows, labels)
    assert set(model.predict(rows)) <= {"a", "b"}
    np.testing.assert_allclose(model.predict_proba(rows).sum(1), 1.0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), model.predict_proba(rows))


@pytest.mark.parametrize("by_table", [False, True], ids=["unit", "relation"])
@pytest.mark.parametrize("spec", NETWORKS, ids=lambda spec: spec.word)
def test_people_with_several_records_are_refused(spec: ModelSpec, by_table: bool) -> None:
    (example,) = spec.examples()
    model = spec.model(1.0, 1e-6, **example.parameters)
    rows = example.rows
    people: Any = np.arange(len(rows)) // 2
    if by_table:
        model.set_params(relation="add_remove_person")
        with pytest.raises(ValueError, match="use one record of each person"):
            model.plan(rows.shape[1])
    with pytest.raises(ValueError, match="use one record of each person"):
        model.fit(rows, example.labels, unit=people)
    assert not hasattr(model, "weights_")


def test_predictions_are_within_the_range() -> None:
    rows = np.random.default_rng(0).standard_normal((80, 3))
    model = NeuralRegressor(label_range=(5, 6), n_records=80, n_steps=3).fit(rows, rows[:, 0])
    assert 5 <= model.predict(1e6 * rows).min() <= model.predict(rows).max() <= 6


def test_images() -> None:
    rows = np.random.default_rng(0).random((40, 28 * 28))
    told: dict[str, Any] = {"network": "cnn", "image_shape": (1, 28, 28), "n_steps": 2}
    model = NeuralClassifier(classes=range(10), n_records=40, **told).fit(rows, np.arange(40) % 10)
    assert model.predict_proba(rows).shape == (40, 10)
    assert any(isinstance(layer, nn.GroupNorm) for layer in model.module())


WITHOUT_TORCH = """
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NotInstalled())
import tacit, tacit.registry, tacit.saving, tacit.cli
try:
    import tacit.deep
except ImportError as why:
    assert "pip install 'tacit[deep]'" in str(why), why
    print("refused")
try:
    tacit.load(sys.argv[1])
except ImportError as why:
    assert "needs torch" in str(why)
    print("not loaded")
"""


def test_without_torch(tmp_path: Path) -> None:
    model, _ = fitted(NETWORKS[0])
    tacit.save(model, tmp_path / "model.tacit")
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "model.tacit")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["refused", "not loaded"]
