"""Encode the message of a site: its noisy votes under pairwise masks, in a fixed layout.

Each pair agrees on a secret by X25519. HKDF with SHA-256 derives a key for one round, and
AES-256 in counter mode the words of the mask. Masks cancel in the sum over all sites, modulo 2^64.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.pate.sites.round import DIGEST_BYTES, Round

Words = npt.NDArray[np.uint64]

KEY_BYTES = 32


def new_private_key() -> bytes:
    """Return a new X25519 private key, 32 bytes from the operating system."""
    return bytes(_x25519().X25519PrivateKey.generate().private_bytes_raw())


def public_key_of(private_key: bytes) -> str:
    """Return the public key of a private one, in hexadecimal.

    Examples
    --------
    >>> from tacit.pate.sites.messages import new_private_key, public_key_of
    >>> len(public_key_of(new_private_key()))
    64
    """
    private = _x25519().X25519PrivateKey.from_private_bytes(private_key)
    return bytes(private.public_key().public_bytes_raw()).hex()


def mask_of(agreed: Round, site: int, private_key: bytes) -> Words:
    """Return the mask of a site: + for sites after it, - for those before.

    Examples
    --------
    >>> from tacit.pate.sites import Round
    >>> from tacit.pate.sites.round import SiteEntry
    >>> from tacit.pate.sites.messages import mask_of, new_private_key, public_key_of
    >>> keys = [new_private_key() for _ in range(3)]
    >>> sites = tuple(SiteEntry(str(i), 9, public_key_of(key)) for i, key in enumerate(keys))
    >>> agreed = Round("may", sites, 2, "0" * 64, 4, noise_std=9.0, masked=True)
    >>> masks = [mask_of(agreed, i, key) for i, key in enumerate(keys)]
    >>> int((masks[0] + masks[1] + masks[2]).max()), bool(masks[0].any())
    (0, True)
    """
    total = np.zeros((agreed.n_queries, agreed.n_classes), dtype=np.uint64)
    for other, entry in enumerate(agreed.sites):
        if other == site:
            continue
        try:
            words = _words(agreed, private_key, bytes.fromhex(entry.public_key), total.size)
        except ValueError:  # a point of low order makes a secret that everybody knows
            raise VotesRejected(
                f"the public key of {entry.name} is insecure; agree on a round "
                "with the key that its TeacherSite.entry gives."
            ) from None
        # modulo 2^64, as uint64 is
        total += words.reshape(total.shape) if other > site else -words.reshape(total.shape)
    return total


def _words(agreed: Round, private_key: bytes, public_key: bytes, n: int) -> Words:
    """Return the words that a pair of sites shares in this round."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    keys = _x25519()
    private = keys.X25519PrivateKey.from_private_bytes(private_key)
    secret = private.exchange(keys.X25519PublicKey.from_public_bytes(public_key))
    # The digest covers both keys and the whole round, so other rounds have other masks.
    derived = HKDF(SHA256(), 32, salt=agreed.digest, info=b"tacit votes").derive(secret)
    stream = Cipher(algorithms.AES(derived), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(8 * n)), "<u8").astype(np.uint64)


def _x25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise ImportError(
            "masked votes need the package cryptography; pip install tacit[sites]."
        ) from None
    return x25519


PROTOCOL_VERSION = 1
_MARK = b"tacV"
# Little-endian: mark, version, digest of the round, place of the site, teachers, queries, classes.
_HEADER = struct.Struct(f"<4sH{DIGEST_BYTES}sHIIH")
_CHECKSUM = struct.Struct("<I")


class VotesRejected(ValueError):
    """A message is refused; the state of the receiver is unchanged.

    Examples
    --------
    >>> from tacit.pate.sites.messages import SiteVotes
    >>> SiteVotes.from_bytes(b"hello")
    Traceback (most recent call last):
    tacit.pate.sites.messages.VotesRejected: 5 bytes are too few for votes; send whole messages.
    """


@dataclass(frozen=True, eq=False)
class SiteVotes:
    """The votes of one site in one round, in steps of the round's lattice, modulo 2^64.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.sites.messages import SiteVotes
    >>> sent = SiteVotes(bytes(32), 1, 50, np.zeros((4, 3), dtype=np.uint64)).to_bytes()
    >>> len(sent), SiteVotes.from_bytes(sent).site
    (150, 1)
    """

    round_digest: bytes
    site: int
    n_teachers: int
    steps: Words

    def to_bytes(self) -> bytes:
        """Encode the message."""
        n_queries, n_classes = self.steps.shape
        head = _HEADER.pack(
            _MARK,
            PROTOCOL_VERSION,
            self.round_digest,
            self.site,
            self.n_teachers,
            n_queries,
            n_classes,
        )
        body = head + self.steps.astype("<u8").tobytes()
        return body + _CHECKSUM.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> SiteVotes:
        """Decode a message, or raise `VotesRejected`."""
        if len(data) < _HEADER.size + _CHECKSUM.size:
            raise VotesRejected(f"{len(data)} bytes are too few for votes; send whole messages.")
        mark, version, digest, site, n_teachers, n_queries, n_classes = _HEADER.unpack_from(data)
        if mark != _MARK:
            raise VotesRejected("this does not begin like votes; send what a TeacherSite returned.")
        if version != PROTOCOL_VERSION:
            raise VotesRejected(
                f"votes of protocol version {version}; this tacit knows {PROTOCOL_VERSION}."
            )
        expected = _HEADER.size + 8 * n_queries * n_classes + _CHECKSUM.size
        if len(data) != expected:
            raise VotesRejected(
                f"votes of {len(data)} bytes, {expected} expected; send them whole."
            )
        body = data[: -_CHECKSUM.size]
        if _CHECKSUM.unpack(data[-_CHECKSUM.size :]) != (zlib.crc32(body),):
            raise VotesRejected("the checksum differs: the message was damaged; send it again.")
        steps = np.frombuffer(body, "<u8", offset=_HEADER.size).astype(np.uint64)
        return cls(digest, site, n_teachers, steps.reshape(n_queries, n_classes))

    def check(self, agreed: Round) -> None:
        """Refuse votes of another round, or of a site that differs from its entry."""
        if self.round_digest != agreed.digest:
            raise VotesRejected("these are votes of another round.")
        if self.site >= len(agreed.sites):
            raise VotesRejected("these are votes of a site that the round does not have.")
        if self.steps.shape != (agreed.n_queries, agreed.n_classes):
            raise VotesRejected("these are votes on other queries or classes than the round's.")
        entry = agreed.sites[self.site]
        if self.n_teachers != entry.n_teachers:
            raise VotesRejected(
                f"{entry.name} says that it has {self.n_teachers} teachers, and the round that it "
                f"has {entry.n_teachers}."
            )
