from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.privacy import Composed, Gaussian, PureEpsilon, SampledGaussian
from tacit.saving import NotAModel, inspect, save
from tests.saving.helpers import FITS, edited, fitted


@pytest.mark.parametrize("name", FITS)
def test_a_certificate_says_what_the_model_promises(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    save(model, tmp_path / "model.tacit")
    certificate = inspect(tmp_path / "model.tacit")
    assert certificate.privacy == model.privacy_
    assert certificate.statement == model.privacy_.statement()
    page = str(certificate)
    assert certificate.statement in page
    assert certificate.sha256 in page
    facts = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert facts["statement"] == certificate.statement
    assert facts["n_features"] == getattr(model, "estimator_", model).n_features_in_


def test_what_a_person_reads(tmp_path: Path) -> None:
    save(fitted("svc"), tmp_path / "model.tacit")
    page = str(inspect(tmp_path / "model.tacit"))
    assert page.startswith("LinearSVC, saved by tacit ")
    for line in (
        "classes: 2 (False, True)",
        "  constraint = l2_ball(bound=5.0)",
        "  mechanism = noisy_gradient(n_steps=20, clip=None, preconditioner=None, pace=None)",
        "plan:",
    ):
        assert line in page.splitlines()


def test_a_table_model_shows_its_schema(tmp_path: Path) -> None:
    save(fitted("table_float32"), tmp_path / "model.tacit")
    certificate = inspect(tmp_path / "model.tacit")
    page = str(certificate)
    assert page.startswith("PoissonRegressor of 'visits' from a table, saved by tacit ")
    assert 'age = { kind = "number", lower = 0' in page
    assert "guessed from the data" in certificate.statement
    assert certificate.to_dict()["feature_names"][0] == "age"
    assert certificate.to_dict()["schema"] == fitted("table_float32").schema.to_dict()


@pytest.mark.parametrize(
    "event",
    [
        Composed((PureEpsilon(1e300), Gaussian(1e-300))),
        SampledGaussian(1e-300, 0.5),
        SampledGaussian(1e300, 1e-300),
    ],
    ids=repr,
)
def test_an_event_whose_cost_cannot_be_computed(event: Any, tmp_path: Path) -> None:
    def edit(record: dict[str, Any]) -> None:
        record["event"] = event.to_dict()

    (tmp_path / "forged").write_bytes(edited("mean", edit, "guarantee.json"))
    with pytest.raises(NotAModel, match="cannot be computed"):
        inspect(tmp_path / "forged")


def test_what_load_refuses_is_not_inspected(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"text")
    with pytest.raises(NotAModel, match="text is not a model"):
        inspect(tmp_path / "text")
