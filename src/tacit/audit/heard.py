"""Replay random words: draw them once, and return them again."""

from __future__ import annotations

import numpy as np

from tacit.noise import secure_source
from tacit.noise.generator import Source, Words


class HeardSource:
    """Words of a new secure source that `again` replays from the start; for audits only.

    Two fits to neighbouring records with the same words have the same noise. Each has the law of a
    release, and their difference is the effect of the record.

    Examples
    --------
    >>> from tacit.audit.heard import HeardSource
    >>> heard = HeardSource()
    >>> first = heard.words(3)
    >>> bool((heard.again().words(3) == first).all())
    True
    """

    is_secure = False  # repeated words must not protect a release

    def __init__(self) -> None:
        self._source: Source = secure_source()
        self._words: list[int] = []
        self._at = 0

    def words(self, n: int) -> Words:
        """Return the next ``n`` words, drawn words first."""
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
