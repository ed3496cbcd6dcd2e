"""DP-FTRL: what whoever sees the weights after every step finds out about a record.

The attacker knows all records but one, which has one of two labels. Its gradient alone has a part
along the first column, as long as the clip, to one side or to the other. From the weights before
and after a step follows what was released with noise: sums over steps of a tree, or mixtures of the
last few. Those that the record is in, added up, tell the most that anybody can know.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

import tacit.queries.noise as noisy_sum_module
from tacit.audit import Audit
from tacit.deep import BandedNoise, FlatClip, Moment, OrderedTrainer, TreeNoise
from tacit.noise.gaussian import gaussian
from tacit.privacy import Budget, Event, Gaussian, Relation
from tests.audit.worlds import Array, audited, by_means, one_thread, with_less

pytestmark = pytest.mark.usefixtures("one_thread")
__all__ = ["one_thread"]

Table = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]

BATCH, STEPS, PASSES = 4, 4, 2
N, RATE, CLIP = BATCH * STEPS, 0.05, 0.5
# The greater delta is, the less noise there is at the same epsilon, and the more an audit sees.
CLAIM = Budget(2.0, 1e-3, Relation.REPLACE)
FAR = 1000.0  # of the row that is asked about: its gradient is clipped, whatever the weights


def worlds() -> tuple[Table, Table]:
    """Return two tables of two columns, in which the first record has another label."""
    rows = np.zeros((N, 2), np.float32)
    rows[1:, 1] = np.linspace(-2.0, 2.0, N - 1)
    rows[0, 0] = FAR
    labels = (np.arange(N) % 2).astype(np.int64)
    other = labels.copy()
    other[0] = 1
    return (rows, labels), (rows, other)


@dataclass(frozen=True)
class Attack:
    """A training with correlated noise, and what is made of its weights."""

    noise: TreeNoise | BandedNoise
    released: Callable[[Array], Array]  # the noisy sums that the record is in, one row a pass

    def trainer(self, epsilon: float, seen: Callable[[Moment], None]) -> OrderedTrainer:
        model = nn.Linear(2, 2, bias=False)
        nn.init.zeros_(model.weight)
        return OrderedTrainer(
            model,
            nn.CrossEntropyLoss(reduction="none"),
            torch.optim.SGD(model.parameters(), lr=RATE / FAR),
            Budget(epsilon, CLAIM.delta, CLAIM.relation),
            n_records=N,
            batch_size=BATCH,
            epochs=PASSES,
            noise=self.noise,
            clip=FlatClip(CLIP),
            callbacks=[seen],
        )

    def fit(self, table: Table) -> Array:
        """Return the weights after every step, and those that are released at last."""
        seen: list[npt.NDArray[np.float32]] = []

        def note(moment: Moment) -> None:
            seen.append(moment.model.weight.detach().numpy().copy().ravel())

        made = self.trainer(CLAIM.epsilon, note).fit(*table)
        final = made.model.weight.detach().numpy().ravel()
        return np.stack([*seen, final]).astype(np.float64)

    def score(self, released: Array) -> float:
        """Return the sum that the record moves most, in units of clips, over its spread."""
        weights = released.reshape(STEPS * PASSES + 1, 4)
        np.testing.assert_array_equal(weights[-1], weights[-2])  # the final ones tell nothing more
        steps = -np.diff(weights[:-1], axis=0, prepend=np.zeros((1, 4))) * FAR / RATE
        # of class 0 its gradient is along (-1, 1) of the two outputs, and of class 1 along (1, -1)
        towards = np.array([1.0, 0.0, -1.0, 0.0]) / math.sqrt(2)
        estimates = steps @ towards * BATCH / CLIP
        return float(self.released(estimates).sum())

    def audit(self, runs: int) -> Audit:
        """Return what is found."""

        def promised(epsilon: float) -> Event:
            return self.trainer(epsilon, lambda moment: None).plan().event

        return audited(self.fit, worlds(), CLAIM, runs, self.score, promised)


def tree_nodes(estimates: Array) -> Array:
    """Return the noisy sums over the first 1, 2 and 4 steps of every pass: the record's nodes.

    At steps 1, 2 and 4 the running total is one node, which the estimates add up to; every pass
    begins anew.
    """
    totals = np.cumsum(estimates.reshape(PASSES, STEPS), axis=1)
    return totals[:, [0, 1, 3]]


BANDS = BandedNoise(3)


def banded_rows(estimates: Array) -> Array:
    """Return the rows of C x + Z that the record is in, each times what it has of the record."""
    mixed = np.convolve(estimates, BANDS.coefficients)[: len(estimates)]
    return mixed.reshape(PASSES, STEPS)[:, : BANDS.bands] * BANDS.coefficients


TREE, BANDED = Attack(TreeNoise(), tree_nodes), Attack(BANDS, banded_rows)
EACH = pytest.mark.parametrize("attack", [TREE, BANDED], ids=["tree", "banded"])


@pytest.mark.slow
@EACH
def test_two_passes_tell_what_is_promised_and_no_more(attack: Attack) -> None:
    found = attack.audit(1500)
    assert not found.above_claim, str(found)
    # Scores are Gaussian. In the middle two thirds are found; this is five spreads of audits less.
    assert by_means(found).epsilon >= 0.3 * CLAIM.epsilon, str(found)


@pytest.mark.slow
@EACH
def test_half_the_noise_is_found(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.5))
    found = attack.audit(800)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)


def test_a_tenth_of_the_noise_is_found_by_few_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy_sum_module, "gaussian", with_less(gaussian, 0.1))
    for attack in (TREE, BANDED):
        found = attack.audit(100)
        assert by_means(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_a_tree_that_is_paid_for_once_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is in a sum of every level and every pass, and each costs."""

    def once(noise: TreeNoise, z: float, steps: int, epochs: int, relation: Relation) -> Event:
        del noise, steps, epochs
        return Gaussian(z, relation)

    monkeypatch.setattr(TreeNoise, "event", once)
    found = TREE.audit(400)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)


@pytest.mark.slow
def test_bands_whose_spread_is_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is in as many rows as there are bands, in every pass."""
    monkeypatch.setattr(BandedNoise, "spread", lambda *of: 1.0)
    found = BANDED.audit(1600)
    assert by_means(found).epsilon > CLAIM.epsilon, str(found)
