"""Draw the secret number of trials of a search, once and independently of the data."""

from __future__ import annotations

import numpy as np

from tacit.noise.generator import Source, secure_source
from tacit.privacy.tries import TriesLaw

_BITS = 128


def draw_tries(law: TriesLaw, source: Source | None = None) -> int:
    """Draw K from a law; the caller must keep K secret.

    A word of 128 bits is compared with P(K >= k), k = 1, 2, ..., each a sum of positive terms.

    Notes
    -----
    **Guarantee**. P(K = k) has a relative error of at most 1e-11, and so has phi'(u) for every u in
    [0, 1]. `tacit.privacy.selection` charges a hundred times that (docs/proofs/selection.md,
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
    at_least[: int(np.argmax(table > 0.0)) + 1] = 1.0  # exact, whatever the sum's rounding
    tries = 0
    # A float times 2^128 is an integer, or so far below 1 that the case never occurs.
    while tries + 1 < table.size and word < int(float(at_least[tries + 1]) * 2.0**_BITS):
        tries += 1
    return tries
