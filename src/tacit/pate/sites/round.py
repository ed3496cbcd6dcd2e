"""Define a round: the parameters that sites and collector agree on, and their digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tacit import checks
from tacit.pate.teachers import facts_of
from tacit.privacy import Event, Relation
from tacit.queries import Facts
from tacit.queries.votes import SharedVotes, Votes

FORMAT, VERSION = "tacit-round", 1
DIGEST_BYTES = 32
# From here on the lattice would be coarser than one vote, and votes would be rounded.
_MOST_SHARE = 2.0**10
_MOST_BYTES = 10**6
_DIGITS = "0123456789abcdef"


@dataclass(frozen=True)
class SiteEntry:
    """The public entry of a site: its name, its teachers, and its key if masks are used.

    Examples
    --------
    >>> from tacit.pate.sites.round import SiteEntry
    >>> SiteEntry("north", 80).public_key
    ''
    """

    name: str
    n_teachers: int
    public_key: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 100:
            raise ValueError("a site's name must have 1 to 100 letters.")
        checks.count("n_teachers", self.n_teachers, most=10**6)
        digits = isinstance(self.public_key, str) and set(self.public_key) <= set(_DIGITS)
        if not digits or len(self.public_key) not in (0, 64):
            raise ValueError("public_key must be 64 hexadecimal digits, or empty.")


@dataclass(frozen=True)
class Round:
    """One round of voting, identified by its digest.

    Parameters
    ----------
    name
        The name of the round; a site answers a name once.
    sites
        All sites, in the agreed order.
    n_classes
        The number of classes.
    queries
        The SHA-256 of the public rows (`digest_of`), in hexadecimal.
    n_queries
        The number of public rows.
    noise_std
        The least noise on the sum of all votes.
    n_missing
        The number of sites that may drop out or collude; the noise of the others is enough.
    masked
        Whether sites mask their votes, so that the collector sees only the sum.
    relation
        The relation between neighbouring records of a site.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 6). With at least k - n_missing honest sites the sum
    has Gaussian noise of at least ``noise_std`` on every count.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.pate.sites import Round, digest_of
    >>> from tacit.pate.sites.round import SiteEntry
    >>> rows = np.zeros((5, 2))
    >>> sites = tuple(SiteEntry(name, 50) for name in ("north", "south", "west"))
    >>> agreed = Round("may", sites, 3, digest_of(rows), 5, noise_std=20.0, n_missing=1)
    >>> round(agreed.share_std, 3), Round.from_bytes(agreed.to_bytes()) == agreed
    (14.142, True)
    """

    name: str
    sites: tuple[SiteEntry, ...]
    n_classes: int
    queries: str
    n_queries: int
    noise_std: float
    n_missing: int = 0
    masked: bool = False
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        k = len(self.sites)
        names = [site.name for site in self.sites]
        if len(set(names)) != k or not k:
            raise ValueError("a round needs at least one site, each of another name.")
        checks.count("n_classes", self.n_classes, least=2, most=65_535)
        checks.count("n_queries", self.n_queries, most=2**24)
        checks.count("n_missing", self.n_missing, least=0, most=k - 1)
        checks.positive("noise_std", self.noise_std)
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 100:
            raise ValueError("a round's name must have 1 to 100 letters.")
        if len(self.queries) != 2 * DIGEST_BYTES:
            raise ValueError("queries must be the SHA-256 of the rows: digest_of(rows).")
        if not self.share_std < _MOST_SHARE:
            raise ValueError(
                f"each site would add noise of {self.share_std:g} to a count; from {_MOST_SHARE:g} "
                "on votes would be rounded. Ask fewer queries, or raise epsilon."
            )
        keys = [site.public_key for site in self.sites if site.public_key]
        if len(set(keys)) != len(keys):
            raise ValueError("two sites have the same public_key; each needs a key of its own.")
        if self.masked and len(keys) != k:
            raise ValueError("masked votes need the public key of every site.")

    @property
    def facts(self) -> Facts:
        """The public facts of every site's teachers."""
        return facts_of(self.relation)

    def shared_votes(self, site: int, mask: Any = None) -> SharedVotes:
        """Return the query to a site's teachers, with its mask if there is one."""
        votes = Votes(self.n_queries, self.sites[site].n_teachers, self.n_classes)
        return SharedVotes(votes, self.noise_std, len(self.sites) - self.n_missing, mask)

    @property
    def share_std(self) -> float:
        """The noise that each site adds: noise_std / sqrt(k - n_missing), rounded up slightly."""
        return self.shared_votes(0).share_std

    @property
    def spacing(self) -> float:
        """The lattice spacing of every site's noise; it divides one vote."""
        return self.shared_votes(0).spacing(self.facts)

    @property
    def sum_event(self) -> Event:
        """The event of the sum of all votes, if at most n_missing sites are missing."""
        return self.shared_votes(0).sum_event(self.facts)

    @property
    def share_event(self) -> Event:
        """The event of one site's votes alone, protected by their own noise only."""
        return self.shared_votes(0).event(self.facts)

    def to_bytes(self) -> bytes:
        """Return the round as canonical JSON."""
        fields = {**asdict(self), "relation": self.relation.value}
        record = {"format": FORMAT, "version": VERSION, **fields}
        return json.dumps(record, sort_keys=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Round:
        """Decode a round, or raise ValueError."""
        try:
            if len(data) > _MOST_BYTES:
                raise ValueError("too long")
            record: dict[str, Any] = json.loads(data)
            head = record.pop("format"), record.pop("version")
            if head != (FORMAT, VERSION):
                raise ValueError(f"version {head!r}")
            sites = tuple(SiteEntry(**site) for site in record.pop("sites"))
            made = cls(sites=sites, relation=Relation(record.pop("relation")), **record)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
            raise ValueError(f"this is no round that tacit knows: {str(why)[:200]}") from None
        if made.to_bytes() != data:
            raise ValueError("the round is not written as tacit writes it.")
        return made

    @property
    def digest(self) -> bytes:
        """The SHA-256 digest of the round."""
        return hashlib.sha256(self.to_bytes()).digest()


def digest_of(rows: Any) -> str:
    """Return the SHA-256 of public rows, as float64 in their order.

    Examples
    --------
    >>> from tacit.pate.sites import digest_of
    >>> digest_of([[1, 2]]) == digest_of([[1.0, 2.0]])
    True
    """
    array = np.ascontiguousarray(rows, dtype="<f8")
    shape = ",".join(map(str, array.shape)).encode("ascii")
    return hashlib.sha256(shape + b":" + array.tobytes()).hexdigest()
