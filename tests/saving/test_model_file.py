from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tacit.linear_model import LogisticRegression
from tacit.location import Mean
from tacit.pipeline import PrivatePipeline
from tacit.saving import CannotSave, NotAModel, load, save
from tacit.saving.validation import STORED
from tests.saving.helpers import (
    FITS,
    FRAME,
    PEOPLE,
    PREDICTING,
    SCORES,
    X,
    fingerprint,
    fitted,
    saved,
)


def test_every_kind_is_tried() -> None:
    stored = {spec.model for spec in STORED.values()}
    assert {type(fitted(name)) for name in FITS} == stored | {PrivatePipeline}


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_model_is_the_model(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    save(model, tmp_path / "model.tacit")
    again = load(str(tmp_path / "model.tacit"))
    assert fingerprint(again) == fingerprint(model)
    assert again.privacy_ == model.privacy_
    assert getattr(again, "plan_", None) == getattr(model, "plan_", None)
    assert hasattr(again, "plan_") == hasattr(model, "plan_")
    assert again.get_params().get("accountant") is None
    assert again.get_params().get("random_state") is None


@pytest.mark.parametrize("name", PREDICTING)
def test_it_predicts_bit_for_bit_the_same(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    save(model, tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    many = np.random.default_rng(0).standard_normal((3000, 3))
    tables = [many, many.astype("f4"), sparse.csr_array(many)]
    if isinstance(model, PrivatePipeline):
        tables = [PEOPLE, pl.from_pandas(PEOPLE), PEOPLE.to_dict("list")]
    elif hasattr(model, "feature_names_in_"):
        tables = [FRAME]
    for each in tables:
        for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
            if hasattr(model, method):
                ours, theirs = getattr(again, method)(each), getattr(model, method)(each)
                assert ours.dtype == theirs.dtype
                assert ours.tolist() == theirs.tolist()
                assert ours.dtype == object or ours.tobytes() == theirs.tobytes()


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(fitted("softmax_words"), tmp_path / name)
    save(load(tmp_path / "a"), tmp_path / "c")
    one, two, three = ((tmp_path / name).read_bytes() for name in ("a", "b", "c"))
    assert one == two == three


def test_any_zip_program_can_open_it(tmp_path: Path) -> None:
    save(fitted("softmax_words"), tmp_path / "model.tacit")
    with zipfile.ZipFile(tmp_path / "model.tacit") as opened:
        assert opened.testzip() is None
        with opened.open("released.coef_.npy") as file:
            coef = np.load(file, allow_pickle=False)
    assert coef.tobytes() == fitted("softmax_words").coef_.tobytes()


def test_only_what_was_released_is_in_it(tmp_path: Path) -> None:
    model = LogisticRegression(1.0, row_norm=2.0, random_state=987654321)
    model.fit(X, SCORES > 0)
    model.training_rows_ = np.full(100, 1234567.0)
    model.note = "somebody's secret"
    save(model, tmp_path / "model.tacit")
    data = (tmp_path / "model.tacit").read_bytes()
    for secret in (b"training", b"secret", np.float64(1234567.0).tobytes(), b"987654321"):
        assert secret not in data
    with zipfile.ZipFile(tmp_path / "model.tacit") as opened:
        assert set(opened.namelist()) == {
            "model.json",
            "guarantee.json",
            "released.coef_.npy",
            "released.intercept_.npy",
            "released.classes_.npy",
            "sha256.txt",
        }
    again = load(tmp_path / "model.tacit")
    assert not hasattr(again, "training_rows_")
    assert not hasattr(again, "note")


def test_a_seeded_model_stays_void(tmp_path: Path) -> None:
    save(fitted("logistic_seeded"), tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit")
    assert again.privacy_.voided_by == fitted("logistic_seeded").privacy_.voided_by != ()


def test_a_loaded_model_can_be_fitted_again(tmp_path: Path) -> None:
    save(fitted("svc"), tmp_path / "model.tacit")
    again = load(tmp_path / "model.tacit").fit(X, SCORES > 0)
    assert again.privacy_ == fitted("svc").privacy_
    assert again.coef_.tobytes() != fitted("svc").coef_.tobytes()


class Unsaved:
    """A mechanism of somebody else's."""


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (make_pipeline(StandardScaler(), LogisticRegression()), "StandardScaler.*without privacy"),
        (StandardScaler(), "a StandardScaler cannot be saved"),
        (None, "a NoneType cannot be saved"),
    ],
)
def test_other_models_are_not_saved(model: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(CannotSave, match=why):
        save(model, tmp_path / "model.tacit")
    assert list(tmp_path.iterdir()) == []


def test_an_unfitted_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save(LogisticRegression(), tmp_path / "model.tacit")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"mechanism": Unsaved()}, "parameters.mechanism is of type Unsaved"),
        ({"coef_": np.full((1, 3), np.nan)}, "coef_ has a value that is not finite"),
        ({"coef_": np.ones((1, 4))}, "coef_ is not an array of doubles of shape"),
        ({"coef_": np.ones((1, 3), dtype=complex)}, "complex128 cannot be stored"),
        ({"classes_": np.array([{}, []], dtype=object)}, "not words or numbers"),
        ({"epsilon": 10**30}, "parameters.epsilon is a whole number of more than 64 bits"),
        ({"epsilon": 2.0}, "another budget"),
        ({"regularization": float("nan")}, "parameters.regularization is NaN"),
        ({"classes": {(1,): 2}}, "keys are not words"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    model = LogisticRegression(1.0, row_norm=2.0).fit(X, SCORES > 0)
    (tmp_path / "model.tacit").write_bytes(b"the old one")
    for name, value in change.items():
        setattr(model, name, value)
    with pytest.raises(CannotSave, match=why):
        save(model, tmp_path / "model.tacit")
    assert (tmp_path / "model.tacit").read_bytes() == b"the old one"
    assert len(list(tmp_path.iterdir())) == 1


class Bomb:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was opened",))


def _foreign(tmp_path: Path) -> dict[str, tuple[bytes, str]]:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("hello.txt", "hello")
    np.savez(tmp_path / "other.npz", coef=np.ones(3))
    return {
        "empty": (b"", "is empty"),
        "text": (b"age,income\n", "not a zip"),
        "pickle": (pickle.dumps(Bomb()), "looks like a pickle"),
        "zip": ((tmp_path / "other.zip").read_bytes(), "which tacit never writes"),
        "npz": ((tmp_path / "other.npz").read_bytes(), "which tacit never writes"),
        "half": (saved("linear")[: len(saved("linear")) // 2], "cut off|no member sha256"),
        "no end": (saved("linear")[:-1], "repacked or changed"),
        "more": (saved("linear") + b"\0", "repacked or changed"),
        "before": (b"\0" + saved("linear"), "not a zip"),
        "two": (saved("linear") + saved("mean"), "repacked or changed"),
    }


def test_foreign_files_are_refused_with_a_reason(tmp_path: Path) -> None:
    for name, (data, why) in _foreign(tmp_path).items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(NotAModel, match=why) as refusal:
            load(tmp_path / name)
        assert str(refusal.value).startswith(f"{name} is not a model that tacit can load: ")


def test_a_repacked_model_is_refused(tmp_path: Path) -> None:
    save(fitted("mean"), tmp_path / "model.tacit")
    with (
        zipfile.ZipFile(tmp_path / "model.tacit") as old,
        zipfile.ZipFile(tmp_path / "again.tacit", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(NotAModel, match="compressed"):
        load(tmp_path / "again.tacit")


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.tacit")
    with pytest.raises(OSError, match=r"[Nn]ame too long"):
        load(tmp_path / ("n" * 5000))


def test_folders_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait forever
    for path, why in ((tmp_path / "pipe", "ordinary"), ("/dev/zero", "ordinary"), ("/", "folder")):
        with pytest.raises(NotAModel, match=why):
            load(path)


def test_an_impossible_name_is_refused() -> None:
    with pytest.raises(NotAModel, match="not one that a file can have"):
        load("a\0b")


def test_an_unprintable_reason_is_made_printable(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2Jb").write_bytes(b"")
    with pytest.raises(NotAModel) as refusal:
        load(tmp_path / "a\x1b[2Jb")
    assert str(refusal.value).isprintable()


def test_golden_file() -> None:
    """A file saved by an earlier tacit keeps loading, whatever changes here."""
    golden = Path(__file__).parent / "golden"
    again = load(golden / "mean_0.1.0.tacit")
    assert isinstance(again, Mean)
    assert again.location_.tolist() == [0.5, -0.25]
    assert 0.99 < again.privacy_.epsilon(1e-6) <= 1.0
    softmax = load(golden / "softmax_0.1.0.tacit")
    assert softmax.predict(FRAME[:4]).tolist() == ["green"] * 4
    assert softmax.plan_.mechanism.name == "objective_perturbation"
    assert softmax.feature_names_in_.tolist() == ["age", "hours", "größe"]
    table = load(golden / "table_0.1.0.tacit")
    assert table.predict({"age": [5, 95], "sex": ["f", "m"], "smoker": ["no", "yes"]}).tolist() == [
        "no",
        "yes",
    ]
