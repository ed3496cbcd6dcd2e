"""The classifier of scattered images: planned, charged, replayed, saved; and what it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import tacit
from tacit.estimators.parameters import DECLARED_CLASSES
from tacit.images import ScatteringClassifier, scattering_classifier
from tacit.images.scattering_classifier import NETWORKS
from tacit.linear_model import LogisticRegression
from tacit.noise import SensitivityViolation, recording
from tacit.noise.release import Entry
from tacit.privacy import Accountant, Budget, BudgetExceeded, Gaussian
from tacit.privacy.accounting.calibration import gaussian_multiplier
from tacit.records import Bounds, MemoryRecords
from tacit.registry import NAMES, spec_of
from tacit.testing import replay

SPEC = NETWORKS[0]
SHAPE = (4, 8)
SIZE = 32


def drawn(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Images with stripes along or across."""
    rng = np.random.default_rng(0)
    images, across = rng.uniform(0, 0.3, (n, *SHAPE)), rng.uniform(size=n) < 0.5
    images[across, :, ::2] += 0.6
    images[~across, ::2] += 0.6
    return images.reshape(n, -1), across


# Declared of photographs: red, green and blue, and a mirror image means the same.
PHOTOGRAPHS: dict[str, Any] = {"image_shape": (8, 8, 3), "mirrored": True}


def photographed(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Images of noise, warm or cold in colour."""
    rng = np.random.default_rng(0)
    images, warm = rng.uniform(0.2, 0.8, (n, 8, 8, 3)), rng.uniform(size=n) < 0.5
    images[..., 0] += np.where(warm, 0.1, -0.1)[:, None, None]
    return images.reshape(n, -1), warm


def features(rows: np.ndarray, **told: Any) -> np.ndarray:
    function = model(**told)._row_map(rows.shape[1])
    made = np.empty((len(rows), function.n_columns))
    function(rows, made)
    return made


def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    recipe = replace(scattering_classifier.RECIPE, n_steps=4)
    monkeypatch.setattr(scattering_classifier, "RECIPE", recipe)


def model(**told: Any) -> ScatteringClassifier:
    return ScatteringClassifier(3.0, 1e-5, **{"image_shape": SHAPE, **told})


def test_it_learns_and_costs_what_was_planned() -> None:
    rows, across = drawn(2_000)
    plan = model(classes=[False, True]).plan(SIZE, 2_000)
    assert plan.event == Gaussian(gaussian_multiplier(Budget(3.0, 1e-5)))
    fitted = model().fit(rows[:1500], across[:1500])
    assert fitted.plan_.event == plan.event
    assert fitted.privacy_.epsilon(1e-5) <= 3.0
    assert fitted.score(rows[1500:], across[1500:]) > 0.9
    chances = fitted.predict_proba(rows[1500:])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert np.array_equal(chances.argmax(axis=1) == 1, fitted.predict(rows[1500:]))
    log_chances = fitted.predict_log_proba(rows[1500:])
    np.testing.assert_allclose(np.exp(log_chances), chances, atol=1e-12)
    # mirrored, half as many features know no less of these
    halved = model(mirrored=True).fit(rows[:1500], across[:1500])
    assert halved.coef_.size < 0.6 * fitted.coef_.size
    assert halved.score(rows[1500:], across[1500:]) > 0.9


def test_one_seventh_more_or_less_noise_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe's releases: the count, the moment with 9 % of mu^2, and 500 equal steps."""
    rows, across = drawn(60)
    with recording() as tape:
        model().fit(rows, across)
    events = [entry.event for entry in tape.entries if isinstance(entry, Entry)]
    z = gaussian_multiplier(Budget(3.0, 1e-5))
    multipliers = [e.noise_multiplier for e in events if isinstance(e, Gaussian)]
    assert len(multipliers) == len(events) == 502
    assert multipliers[0] == pytest.approx(10 * z)
    assert multipliers[1] == pytest.approx(z / 0.3)
    np.testing.assert_allclose(multipliers[2:], z * np.sqrt(500 / 0.9), rtol=1e-9)


EXTREME = np.where(np.arange(SIZE) % 3, 1e6, -1e6)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_replayed_on_neighbours(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    rows, across = drawn(60)
    more = np.vstack([rows, EXTREME]), np.append(across, True)
    told: dict[str, Any] = {"relation": relation}
    other: tuple[Any, Any] = (rows, across)
    if relation == "replace":
        told["n_records"] = 61
        other = np.vstack([rows, -EXTREME]), np.append(across, False)

    def fit(data: Any) -> Any:
        return model(**told).fit(*data)

    n = 4 + (1 if relation == "replace" else 2)
    assert replay(fit, more, other) == n
    assert replay(fit, other, more) == n


def test_photographs_are_replayed_on_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    rows, warm = photographed(60)
    more = np.vstack([rows, np.resize(EXTREME, 192)]), np.append(warm, True)
    assert replay(lambda data: model(**PHOTOGRAPHS).fit(*data), more, (rows, warm)) == 6


def test_replayed_without_a_person_of_many_images(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    rows, across = drawn(60)
    unit = np.array([f"p{i // 2}" for i in range(60)], dtype=object)
    more = (
        np.vstack([rows, np.tile(EXTREME, (20, 1))]),
        np.append(across, np.ones(20, bool)),
        np.append(unit, ["zoe"] * 20),
    )

    def fit(data: Any) -> Any:
        return model().fit(data[0], data[1], unit=data[2])

    assert replay(fit, more, (rows, across, unit)) == 6


def test_an_image_that_is_not_normalised_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as long as they come, and records that do not clip them."""
    few_steps(monkeypatch)
    monkeypatch.setattr("tacit.features.images.to_unit", lambda vector: 50.0 * vector)
    monkeypatch.setattr("tacit.features.composition.to_unit", lambda vector: 50.0 * vector)
    monkeypatch.setattr(MemoryRecords, "clip_factors", lambda self: np.ones(self.rows.shape[0]))
    rows, across = drawn(60)
    more = np.vstack([rows, EXTREME]), np.append(across, True)
    with pytest.raises(SensitivityViolation):
        replay(lambda data: model().fit(*data), more, (rows, across))


def test_no_image_changes_another_ones_features() -> None:
    for rows, told in ((drawn(40)[0], {}), (photographed(40)[0], PHOTOGRAPHS)):
        whole = features(rows, **told)
        assert whole[17].tobytes() == features(rows[17:18], **told)[0].tobytes()
        np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0)


@pytest.mark.parametrize("shape", [(16, 16, 3), (16, 16)], ids=["colours", "grey"])
def test_a_photograph_has_the_features_of_its_mirror_image(shape: tuple[int, ...]) -> None:
    """Noise over slanted stripes, which lean the other way in a mirror."""
    images = np.random.default_rng(0).uniform(0, 0.2, (3, *shape))
    u, v = np.meshgrid(np.arange(16), np.arange(16), indexing="ij")
    for i, stripes in enumerate((np.cos(u + v), np.cos(0.6 * u + 1.2 * v), np.cos(2 * u + v))):
        images[i].reshape(16, 16, -1)[...] += 0.4 * (1 + stripes[..., None])
    one, other = (
        features(x.reshape(3, -1), image_shape=shape, mirrored=True)
        for x in (images, images[:, :, ::-1])
    )
    assert np.abs(one - other).max() < 0.007
    upside_down = features(images[:, ::-1].reshape(3, -1), image_shape=shape, mirrored=True)
    assert np.linalg.norm(one - upside_down, axis=1).min() > 0.1


def test_colours_of_photographs_are_learned() -> None:
    """What groups made alike do not tell: all that differs is how much red there is."""
    rows, warm = photographed(1_000)
    fitted = model(**PHOTOGRAPHS).fit(rows[:800], warm[:800])
    assert fitted.privacy_.epsilon(1e-5) <= 3.0
    assert fitted.score(rows[800:], warm[800:]) > 0.9
    # extremes: black, white, one colour alone, and no colour
    odd = np.zeros((4, 64, 3))
    odd[1], odd[2, :, 0], odd[3] = 1.0, 1.0, np.linspace(0, 1, 64)[:, None]
    made = features(odd.reshape(4, -1), **PHOTOGRAPHS)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1.0)


def test_hostile_pixels_are_clipped_or_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    few_steps(monkeypatch)
    rows, across = drawn(60)
    rows[3], rows[4] = 1e300, -1e300
    fitted = model().fit(rows, across)
    assert np.all(np.isfinite(fitted.coef_))
    assert np.all(np.isfinite(fitted.decision_function(rows)))


@pytest.mark.parametrize("photographs", [False, True])
def test_a_fit_leaves_what_is_declared_and_is_saved(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, photographs: bool
) -> None:
    few_steps(monkeypatch)
    rows, across = photographed(60) if photographs else drawn(60)
    told = PHOTOGRAPHS if photographs else {}
    fitted = model(**told).fit(rows, across)
    assert spec_of(fitted) is SPEC
    left = set(vars(fitted)) - set(fitted.get_params(deep=False))
    assert left == (set(SPEC.released) - {NAMES, DECLARED_CLASSES}) | {"privacy_", "plan_"}
    assert SPEC.n_terms(fitted) == fitted.coef_.shape[1]
    kinds = {name.partition("_")[0] for name in scattering_classifier.term_names(fitted)}
    assert kinds == ({"wave", "mean", "spread"} if photographs else {"wave"})
    tacit.save(fitted, tmp_path / "model.tacit")
    again = tacit.load(tmp_path / "model.tacit")
    assert np.array_equal(again.decision_function(rows), fitted.decision_function(rows))
    assert again.get_params()["image_shape"] == fitted.image_shape
    assert again.plan_ == fitted.plan_


def test_a_shared_budget_is_charged_before_anything_is_read() -> None:
    accountant = Accountant(Budget(1.0, 1e-5))
    hostile = np.full((60, SIZE), np.nan)  # would be refused if it were read
    with pytest.raises(BudgetExceeded):
        model(accountant=accountant, classes=[0, 1]).fit(hostile, np.zeros(60, int))
    rich = Accountant(Budget(3.0, 1e-5))
    model(accountant=rich).fit(*drawn(60))
    with pytest.raises(BudgetExceeded):
        model(accountant=rich).fit(*drawn(60))


@pytest.mark.parametrize(
    ("told", "word"),
    [
        ({"image_shape": (28, 28)}, "image_shape"),
        ({"image_shape": (4,)}, "image_shape"),
        ({"pixel_range": (1.0, 0.0)}, "ranges"),
    ],
)
def test_what_cannot_be_is_refused_before_data_are_read(told: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        model(classes=[0, 1], **told).plan(SIZE)
    with pytest.raises(ValueError, match=word):
        model(**told).fit(*drawn(60))


def test_a_source_of_sums_is_refused() -> None:
    with pytest.raises(TypeError, match="single rows"):
        model().fit(MemoryRecords(np.zeros((3, SIZE)), np.ones(3), Bounds()))


def test_progress_tells_no_number_of_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few_steps(monkeypatch)
    rows, across = drawn(61)
    model(verbose=1).fit(rows, across)
    told = capsys.readouterr().err
    assert "features: 100 %" in told
    assert "61" not in told.split("\n")[0]


def test_it_is_cloned_with_its_parameters() -> None:
    first = model(mirrored=True)
    assert clone(first).get_params() == first.get_params()
    assert isinstance(first._linear(), LogisticRegression)
