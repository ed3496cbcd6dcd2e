"""What a site sends: its noisy votes, perhaps masked; a fixed layout, no pickle."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.pate.sites.round import DIGEST_BYTES, Round

Words = npt.NDArray[np.uint64]

PROTOCOL_VERSION = 1
_MARK = b"tacV"
# Little-endian: mark, version, digest of the round, place of the site, teachers, queries, classes.
_HEADER = struct.Struct(f"<4sH{DIGEST_BYTES}sHIIH")
_CHECKSUM = struct.Struct("<I")


class VotesRejected(ValueError):
    """A message that is refused; whoever refused it is as before.

    Examples
    --------
    >>> from tacit.pate.sites import SiteVotes
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
    >>> from tacit.pate.sites import SiteVotes
    >>> sent = SiteVotes(bytes(32), 1, 50, np.zeros((4, 3), dtype=np.uint64)).to_bytes()
    >>> len(sent), SiteVotes.from_bytes(sent).site
    (150, 1)
    """

    round_digest: bytes
    site: int
    n_teachers: int
    steps: Words

    def to_bytes(self) -> bytes:
        """Return the message as it travels."""
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
        """Return the votes that were sent, or raise `VotesRejected`."""
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
        """Refuse votes that are not of a round, or not of a site as it was agreed on."""
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
