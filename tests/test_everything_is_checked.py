"""Whatever has a conformance check is in the table that feeds it: found, and compared.

Estimators are compared in `tests.test_registry`, mechanisms in `tests.test_replay_everything`,
parts of files in `tests.saving.test_registry`, record sources in `tests.records.test_sources`.
"""

from __future__ import annotations

import dataclasses

from tacit.erm.losses import Loss, PointLoss
from tacit.local import Sanitizer
from tacit.local.sanitizers.additive import NoNoise
from tacit.pate.aggregators import AGGREGATORS, Aggregator
from tacit.privacy import Event, NonPrivate
from tests.declared import all_classes, concrete
from tests.erm.test_losses import CASES, POINTS
from tests.local.sanitizers.helpers import sanitizers
from tests.privacy.families import FAMILIES


def test_the_search_finds_what_is_not_exported() -> None:
    found = {cls.__name__ for cls in all_classes()}
    assert {"MemoryRecords", "_LeastSquares", "ModelSpec", "Gaussian"} <= found


def test_every_event_has_a_family() -> None:
    made = [family(2.0) for family in FAMILIES.values()]
    parts = (leaf for event in made for leaf, _ in event.leaves())
    in_families = {type(event) for event in (*made, *parts)}
    # promises nothing, so there is nothing to check
    assert concrete(under=Event) - {NonPrivate} == in_families


def test_every_sanitizer_is_tried() -> None:
    # adds nothing, for an infinite epsilon
    assert concrete(under=Sanitizer) - {NoNoise} == {type(law) for law in sanitizers(3)}


def test_every_loss_is_tried() -> None:
    tried: set[type] = {type(loss) for loss, _ in CASES} | {type(loss) for loss in POINTS}
    found = concrete(under=Loss) | concrete(under=PointLoss)
    assert {cls for cls in found if dataclasses.is_dataclass(cls)} == tried


def test_every_aggregator_is_registered() -> None:
    assert concrete(under=Aggregator) == set(AGGREGATORS)
