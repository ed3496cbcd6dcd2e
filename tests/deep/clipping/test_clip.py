"""What is released beside a sum where the clip adapts: how far one record can move it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tacit.deep import AdaptiveClip, FlatClip
from tacit.deep.clipping.book_keeping import BookKeeper, Sums
from tacit.deep.clipping.clip import AdaptiveState, FixedState, lengths_of
from tacit.deep.planning import facts_of
from tacit.privacy import Budget
from tacit.queries.clipped_sum import LENGTH_SLACK
from tests.deep.architectures import ARCHITECTURES, CROSS_ENTROPY
from tests.deep.clipping.test_book_keeping import keeper_of

CLIP = 0.75
FACTS = facts_of(Budget(1.0, 1e-5))


class Summed:
    """A batch whose sum is given."""

    def __init__(self, sums: Sums) -> None:
        self.sums = sums

    def clipped(self, clip: Any) -> Sums:
        return self.sums


def state(batch_size: float = 100.0, norm: float = CLIP) -> AdaptiveState:
    return AdaptiveState(AdaptiveClip(norm), 1.0, batch_size)


def released(sums: Sums, of: AdaptiveState) -> tuple[Any, float]:
    """Return the vector and how far one record may move it."""
    statistic = of.statistic
    return statistic.total(Summed(sums), FACTS), statistic.sensitivity(FACTS).value


def of_lengths(lengths: Tensor, moved: float = 0.0) -> Sums:
    """Return a sum of one number, and lengths of one part."""
    return Sums(torch.tensor([moved], dtype=torch.float64), lengths[None])


@pytest.mark.parametrize("batch_size", [40.0, 100.0, 5000.0])
@pytest.mark.parametrize("share", [0.75, 0.9999, 1.0, 1.0001, 1.25])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_lengths_that_rounding_moves_are_covered(
    batch_size: float, share: float, sign: float
) -> None:
    """All records of the largest batch have one length, and one more moves all of them."""
    of, n = state(batch_size), int(2 * batch_size + 64)
    lengths = torch.full((n - 1,), share * CLIP, dtype=torch.float64)
    before, bound = released(of_lengths(lengths), of)
    moved = torch.cat([lengths * (1 + sign * LENGTH_SLACK), torch.zeros(1, dtype=torch.float64)])
    after, other = released(of_lengths(moved, CLIP), of)
    assert bound == other  # which no record has a say in
    assert np.linalg.norm(after - before) <= bound


def test_the_bound_is_not_far_above_what_rounding_can_do() -> None:
    of, n = state(), 263
    lengths = torch.full((n,), 1.25 * CLIP, dtype=torch.float64)
    before, bound = released(of_lengths(lengths), of)
    shorter = torch.cat([lengths * (1 - LENGTH_SLACK), torch.zeros(1, dtype=torch.float64)])
    after, _ = released(of_lengths(shorter, CLIP), of)
    assert np.linalg.norm(after - before) >= 0.99 * bound


def test_copies_of_a_record_at_the_clip() -> None:
    """Rounding decides which of 200 copies are short where the clip is their length."""
    torch.manual_seed(0)
    keeper = BookKeeper(
        nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 3)), CROSS_ENTROPY
    )
    rows, labels = torch.randn(20)[None].repeat(200, 1), torch.zeros(201, dtype=torch.long)
    for seed in range(10):
        torch.manual_seed(seed)
        more = torch.cat([rows, torch.randn(1, 20)])
        for n in (1, 2, 199, 200):
            with_it = torch.cat([rows[:n], more[-1:]])
            found = lengths_of(keeper.sums(rows[:n], labels[:n], FlatClip(1.0)).norms)
            for norm in {*found.tolist(), float(found.max()) * (1 - 2**-24)}:
                of = state(norm=norm)
                before, bound = released(keeper.sums(rows[:n], labels[:n], of.clip), of)
                after, _ = released(keeper.sums(with_it, labels[: n + 1], of.clip), of)
                assert np.linalg.norm(after - before) <= bound


@pytest.mark.parametrize("name", ["mlp", "tutorial", "conv1d", "two_scales", "bilinear_prelu"])
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_lengths_move_less_than_is_assumed(name: str) -> None:
    torch.manual_seed(0)
    architecture = ARCHITECTURES[name]
    model, x = architecture.make(), architecture.records(70)
    keeper, y = keeper_of(model, architecture, x[:2]), torch.randint(0, 3, (70,))
    for scale in (1e-3, 1.0, 1e3):
        rows = x * scale
        whole = lengths_of(keeper.sums(rows, y, FlatClip(1.0)).norms)
        for part in (slice(69), slice(1, None), slice(1), slice(2), slice(35), slice(33, None)):
            found = lengths_of(keeper.sums(rows[part], y[part], FlatClip(1.0)).norms)
            assert found.shape == whole[part].shape
            assert float(((found - whole[part]).abs() / whole[part]).max()) <= LENGTH_SLACK / 4


def test_what_is_clearly_short_or_long_counts_whole() -> None:
    of = state()
    lengths = torch.tensor([0.1, 0.2, 0.5, 3.0, 4.0]) * CLIP
    (_, count), _ = released(of_lengths(lengths), of)
    (_, one), _ = released(of_lengths(lengths[:1]), of)
    assert count == pytest.approx((3 - 2) * one)
    assert released(of_lengths(torch.tensor([CLIP])), of)[0][1] == 0.0  # half of it is short


def test_sensitivities_are_those_of_the_proof() -> None:
    # docs/proofs/networks.md, sections 2 and 4
    sums = of_lengths(torch.tensor([0.5, 2.0]))
    fixed = FixedState(FlatClip(CLIP)).statistic.sensitivity(FACTS)
    assert fixed.value == pytest.approx(CLIP * (1 + 2.0**-10), rel=1e-14)
    _, adaptive = released(sums, AdaptiveState(AdaptiveClip(CLIP, count_noise=0.1), 2.0, 100.0))
    # noise 10 on the count, and on the sum (2^-2 - 20^-2)^(-1/2) clips
    weight = CLIP * (2.0**-2 - 20.0**-2) ** -0.5 / 10.0
    others = (2 * 100 + 64) * 2.0**-12 * (1 + 0.5 / 2) / 0.5
    exact = np.hypot(CLIP * (1 + 2.0**-10), weight * (0.5 + others))
    assert adaptive == pytest.approx(exact, rel=1e-12)
