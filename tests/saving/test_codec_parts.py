from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tacit.erm
import tacit.erm.losses
from tacit.erm import Box, L2Ball, NoisySGD, PublicCandidates
from tacit.erm.losses import HuberLoss
from tacit.records import Bounds
from tacit.saving import NotAModel
from tacit.saving.codec import PARTS, fields_of, make_part, word_of


def test_every_mechanism_set_and_loss_has_a_word() -> None:
    """A new one that is forgotten here could not be saved."""
    for module in (tacit.erm, tacit.erm.losses):
        public = [getattr(module, name) for name in module.__all__]
        frozen = [c for c in public if isinstance(c, type) and dataclasses.is_dataclass(c)]
        missing = {c.__name__ for c in frozen} - {part.__name__ for part in PARTS.values()}
        assert missing <= {"Result"}


def test_words_that_files_rely_on_are_still_there() -> None:
    words = """
    noisy_gradient noisy_sgd objective_perturbation output_perturbation public_candidates
    quantile_on_a_line sufficient_statistics box l1_ball l2_ball simplex whole_space absolute_loss
    distance_loss hinge_loss huber_loss logistic_loss poisson_loss quantile_loss smooth_hinge_loss
    softmax_loss squared_distance_loss squared_loss bounds budget objective plan problem
    """
    assert set(words.split()) <= set(PARTS)
    assert len(set(PARTS.values())) == len(PARTS)


@pytest.mark.parametrize(
    "part", [Box(-1.0, 2), NoisySGD(0.5, 7), HuberLoss(0.5), Bounds(label_range=(0.0, 1.0))]
)
def test_round_trip(part: Any) -> None:
    word = word_of(part)
    assert make_part(word, fields_of(part)) == part


def test_an_array_among_the_fields() -> None:
    part = PublicCandidates(np.array([1.0, 2.0]))
    again = make_part("public_candidates", fields_of(part))
    assert again.candidates.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("os.system", {"command": "true"}),
        (None, {}),
        (["l2_ball"], {}),
        ("l2_ball", {}),
        ("l2_ball", {"bound": -1.0}),
        ("l2_ball", {"bound": "1.0"}),
        ("l2_ball", {"bound": True}),
        ("l2_ball", {"bound": float("nan")}),
        ("l2_ball", {"bound": 1.0, "radius": 1.0}),
        ("noisy_sgd", {"n_steps": 3.0}),
        ("noisy_sgd", {"clip": [1.0]}),
        ("bounds", {"label_range": (1.0,)}),
        ("bounds", {"label_range": (1.0, "2")}),
        ("bounds", {"label_range": (2.0, 1.0)}),
        ("objective", {"loss": HuberLoss(), "bounds": L2Ball(1.0)}),
        ("objective", {"loss": "huber_loss", "bounds": Bounds()}),
        ("problem", {"objective": None, "n_features": 3}),
    ],
)
def test_impossible_parts_are_refused(word: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(NotAModel):
        make_part(word, fields)


def test_the_class_is_the_exact_class() -> None:
    class Mine(L2Ball):
        pass

    assert word_of(Mine(1.0)) is None
    assert word_of(L2Ball(1.0)) == "l2_ball"
