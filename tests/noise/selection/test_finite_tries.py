"""K is drawn from its law, and from no other: a fixed K would be seen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.noise import seeded_source
from tacit.noise.selection.finite import draw_tries
from tacit.privacy.accounting.number_of_trials import (
    Capped,
    FixedTries,
    Poisson,
    TriesLaw,
    TruncatedNegativeBinomial,
)
from tests.noise.helpers import WordSource

N = 20_000


def p_value(drawn: list[int], law: TriesLaw) -> float:
    """Return the p-value of counts by K, with rare values of K taken together."""
    expected = N * law.table
    common = int(np.sum(np.cumsum(expected[::-1])[::-1] >= 20.0))
    counts = np.bincount(np.minimum(drawn, common - 1), minlength=common)
    lumped = np.append(expected[: common - 1], expected[common - 1 :].sum())
    seen = lumped > 0.0
    assert counts[~seen].sum() == 0
    return float(chisquare(counts[seen], lumped[seen] * N / lumped.sum()).pvalue)


@pytest.mark.parametrize(
    "law",
    [
        TruncatedNegativeBinomial(1.0, 0.1),
        TruncatedNegativeBinomial(0.0, 0.05),
        Poisson(3.0),
        Capped(TruncatedNegativeBinomial(1.0, 0.1), 20),
    ],
    ids=str,
)
def test_the_number_of_tries_has_its_law(law: TriesLaw) -> None:
    source = seeded_source(12)
    drawn = [draw_tries(law, source) for _ in range(N)]
    assert p_value(drawn, law) > 1e-6
    # and no other: its mean always, or one more in a quarter of the draws
    assert p_value([round(law.mean)] * N, law) < 1e-9
    assert p_value([k + (i % 4 == 0) for i, k in enumerate(drawn)], law) < 1e-9


def test_two_draws_differ_without_a_seed() -> None:
    law = TruncatedNegativeBinomial.of_mean(1000.0)
    assert len({draw_tries(law) for _ in range(8)}) > 1


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("gamma", [0.5, 0.1, 0.07, 0.01])
def test_no_word_draws_less_than_the_law_can(eta: float, gamma: float) -> None:
    # sums of floats may miss 1 by 2^-53, and the last word then draws K = 0
    law = TruncatedNegativeBinomial(eta, gamma)
    last = WordSource([2**64 - 1, 2**64 - 1])
    assert draw_tries(law, last) == 1
    assert draw_tries(FixedTries(7), WordSource([2**64 - 1, 2**64 - 1])) == 7
