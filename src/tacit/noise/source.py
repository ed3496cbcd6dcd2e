"""Generate random bits: AES in counter mode with a key from the operating system."""

from __future__ import annotations

import secrets
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit import checks
from tacit.privacy.fork import generation

Words = npt.NDArray[np.uint64]


class Source(Protocol):
    """A stream of independent uniform 64-bit words."""

    @property
    def is_secure(self) -> bool:
        """Whether nobody can predict the words; a release is private only then."""

    def words(self, n: int) -> Words:
        """Return the next ``n`` words; none is ever returned twice."""


class SecureSource:
    """AES-128 in counter mode under a fresh key from the operating system.

    See `secure_source`. A process that was forked after the source was made takes a new key
    before it draws. A source cannot be copied or pickled, so no two holders share a stream.
    """

    __slots__ = ("_generation", "_generator")

    is_secure = True

    def __init__(self) -> None:
        self._rekey()

    def _rekey(self) -> None:
        from randomgen import AESCounter

        self._generation = generation()
        self._generator: Any = AESCounter(key=secrets.randbits(128))

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        if self._generation != generation():
            self._rekey()
        words: Words = self._generator.random_raw(n)
        return words

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError(
            "a SecureSource cannot be copied or pickled: two copies would add the same noise "
            "twice, and the difference of two releases would be noiseless; make a new one with "
            "secure_source()."
        )


class SeededSource:
    """NumPy's PCG64 from a seed. For tests only; see `seeded_source`."""

    __slots__ = ("_generator",)

    is_secure = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        words: Words = self._generator.random_raw(n)
        return words


def secure_source() -> SecureSource:
    """Return a new cryptographic source with a key of its own.

    A release without a source makes its own, so there is no global state.

    Notes
    -----
    **Guarantee**

    1. The words are the key stream of AES-128 in counter mode (the counter in little-endian
       byte order, from 0) under a key of 128 bits from the operating system.
    2. A forked process never continues its parent's stream.

    **Assumes** that the operating system's generator is sound, that AES-128 cannot be told from
    a random permutation, and that the memory of the process is private. A permutation differs
    from independent words by at most n^2 / 2^129 over n blocks of two words: below 2^-60 for
    2^34 blocks.

    Examples
    --------
    >>> from tacit.noise import secure_source
    >>> secure_source().words(3).dtype
    dtype('uint64')
    """
    return SecureSource()


def seeded_source(seed: int) -> SeededSource:
    """Return a repeatable source, for tests only.

    Notes
    -----
    **Guarantee**: no privacy. Every release drawn from it has a `NonPrivate` event, whose
    ``would_be`` is the event under a secure source.

    Examples
    --------
    >>> from tacit.noise import seeded_source
    >>> bool((seeded_source(7).words(5) == seeded_source(7).words(5)).all())
    True
    """
    checks.count("seed", seed, least=0, most=2**128 - 1, remedy="pass an int such as seed=0.")
    return SeededSource(int(seed))
