from __future__ import annotations

import json
from typing import Any

import pytest

from tacit.privacy import Gaussian, Guarantee, Parallel, PureEpsilon, Repeated
from tacit.saving import NotAModel
from tacit.saving.members import from_certificate, to_certificate
from tacit.saving.model_file import load_bytes
from tests.saving.helpers import edited, fitted

PROMISE = Guarantee(Repeated(Gaussian(5.0), 3), 1e-6, ("one person is one record",), ("Note.",))


def test_round_trip() -> None:
    assert from_certificate(to_certificate(PROMISE)) == PROMISE


def test_an_edited_curve_has_no_effect() -> None:
    def edit(record: dict[str, Any]) -> None:
        for point in record["curve"]:
            point["epsilon"] = 1e-9

    forged = load_bytes(edited("logistic", edit, "guarantee.json")).model
    assert forged.privacy_ == fitted("logistic").privacy_
    assert forged.privacy_.epsilon(1e-6) > 0.9


def test_an_event_with_more_noise_is_not_the_plan_s() -> None:
    def edit(record: dict[str, Any]) -> None:
        record["event"] = PureEpsilon(1e-3).to_dict()

    with pytest.raises(NotAModel, match="not about the release that its plan describes"):
        load_bytes(edited("logistic", edit, "guarantee.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"relation": "replace"},
        {"relation": 3},
        {"target_delta": "0"},
        {"target_delta": 2.0},
        {"assumptions": "a sentence"},
        {"assumptions": [1]},
        {"notes": None},
        {"event": None},
        {"event": {}},
        {"event": Repeated(Gaussian(1.0), 10**7).to_dict()},
        {"event": Parallel((Repeated(Gaussian(1.0), 10**7), Gaussian(1.0))).to_dict()},
        {"event": {**Gaussian(1.0).to_dict(), "noise_multiplier": 0.0}},
        {"event": {**Gaussian(1.0).to_dict(), "noise_multiplier": "1"}},
        {"event": {**Gaussian(1.0).to_dict(), "extra": "1"}},
        {"extra": 1},
    ],
    ids=str,
)
def test_impossible_certificates_are_refused(change: dict[str, Any]) -> None:
    record = json.loads(PROMISE.to_json())
    with pytest.raises(NotAModel, match="guarantee"):
        from_certificate(json.dumps({**record, **change}).encode())


def test_deeply_nested_events_are_refused() -> None:
    def edit(record: dict[str, Any]) -> None:
        event = record["event"]
        for _ in range(400):
            event = {"kind": "composed", "version": 1, "events": [event], "relation": "add_remove"}
        record["event"] = event

    with pytest.raises(NotAModel):
        load_bytes(edited("logistic", edit, "guarantee.json"))
