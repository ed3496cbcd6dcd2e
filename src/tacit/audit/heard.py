"""Random words that are drawn once and heard again."""

from __future__ import annotations

import numpy as np

from tacit.noise import secure_source
from tacit.noise.generator import Source, Words


class HeardSource:
    """Words of a new secure source, from which `again` starts over: for audits alone.

    Two fits to neighbouring records that hear the same words have the same noise: each has the law
    of a release, and what differs between them is what the record did.

    Examples
    --------
    >>> from tacit.audit.heard import HeardSource
    >>> heard = HeardSource()
    >>> first = heard.words(3)
    >>> bool((heard.again().words(3) == first).all())
    True
    """

    is_secure = False  # what hears words twice is no release

    def __init__(self) -> None:
        self._source: Source = secure_source()
        self._words: list[int] = []
        self._at = 0

    def words(self, n: int) -> Words:
        """Return the next ``n`` words, those that were heard before first."""
        missing = self._at + n - len(self._words)
        if missing > 0:
            self._words.extend(self._source.words(missing).tolist())
        self._at += n
        return np.array(self._words[self._at - n : self._at], dtype=np.uint64)

    def again(self) -> HeardSource:
        """Return a source of the same words from the first on."""
        other = HeardSource()
        other._source, other._words = self._source, self._words
        return other
