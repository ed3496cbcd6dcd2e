"""That a budget promises little, in one sentence."""

from __future__ import annotations

import math

import pytest

from tacit.privacy.budget import weakness


@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "said"),
    [
        (10.0, 1e-6, None, ()),
        (10.5, 1e-6, None, ("epsilon 10.5", "factor of 36,316;")),
        (20.0, 1e-6, None, ("epsilon 20", "up to 10^9;")),
        (math.inf, 0.01, 1000, ()),  # said elsewhere, and no promise at all
        (1.0, 0.5, None, ("delta 0.5 is above 1 in 1,000, which", "smaller one if")),
        (1.0, 1.001e-3, None, ("one record in a thousand whole",)),
        (1.0, 1e-3, None, ()),
        (1.0, 0.002, 400, ("delta 0.002 is above 1 in 1,000,",)),
        (math.inf, 0.5, None, ()),
        (1.0, 1e-3, 1000, ()),
        (1.0, 1.001e-3, 1000, ("delta 0.001001 is above 1 in the 1,000 records",)),
        (11.0, 0.01, 1000, ("epsilon 11", ", and delta 0.01", "smaller ones")),
    ],
)
def test_one_sentence(epsilon: float, delta: float, n: int | None, said: tuple[str, ...]) -> None:
    sentence = weakness(epsilon, delta, n)
    assert bool(sentence) == bool(said)
    assert all(words in sentence for words in said)
    if said:
        assert sentence.startswith("WEAK PROMISE")
        assert sentence.endswith(".")
