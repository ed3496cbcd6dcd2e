"""Drawing the number of tries of a search: secret, once, and apart from the data."""

from __future__ import annotations

import numpy as np

from tacit.noise.generator import Source, secure_source
from tacit.privacy.tries import TriesLaw

_BITS = 128


def draw_tries(law: TriesLaw, source: Source | None = None) -> int:
    """Return K of a law, which the caller must keep to itself.

    A word of 128 bits is compared with P(K >= k), k = 1, 2, ..., each a sum of positive terms.

    Notes
    -----
    **Guarantee**. P(K = k) is that of the law to 1e-11 of itself, and so is phi'(u) for every u in
    [0, 1]; `tacit.privacy.selection` charges a hundred times that (docs/proofs/selection.md,
    section 6).

    Examples
    --------
    >>> from tacit.noise.tries import draw_tries
    >>> from tacit.privacy.tries import FixedTries
    >>> draw_tries(FixedTries(7))
    7
    """
    high, low = (secure_source() if source is None else source).words(2).tolist()
    word = (high << 64) | low
    table = law.table / law.table.sum()
    at_least = np.minimum(np.cumsum(table[::-1])[::-1], 1.0)  # P(K >= 0), P(K >= 1), ...
    at_least[: int(np.argmax(table > 0.0)) + 1] = 1.0  # whatever the sum's rounding
    tries = 0
    # a float times 2^128 is a whole number, or so far below 1 / 2^128 that it never happens
    while tries + 1 < table.size and word < int(float(at_least[tries + 1]) * 2.0**_BITS):
        tries += 1
    return tries
