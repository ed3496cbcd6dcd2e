"""Run PATE on records of several sites: local teachers, and votes summed by a collector.

Each pair agrees on a secret by X25519. HKDF with SHA-256 derives a key for one round, and
AES-256 in counter mode the words of the mask. Masks cancel in the sum over all sites, modulo 2^64.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import checks, engine
from tacit.estimators.parameters import classes_of, codes_of, refuse_other_kinds, source_of
from tacit.noise import Source
from tacit.pate._base import check_teacher, key_of
from tacit.pate.aggregators import Answers
from tacit.pate.teachers import VotesOfOne, each_vote, facts_of
from tacit.privacy import AnyAccountant, Budget, Event, Guarantee, Relation
from tacit.queries import Facts, SharedVotes, Slot, Votes
from tacit.records import TableInMemory
from tacit.records.lazy_table import has_people, read_people
from tacit.records.splits import places_of_parts

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
    >>> from tacit.pate.sites import SiteEntry
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
    >>> from tacit.pate.sites import Round, SiteEntry, digest_of
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


Words = npt.NDArray[np.uint64]

KEY_BYTES = 32


def new_private_key() -> bytes:
    """Return a new X25519 private key, 32 bytes from the operating system."""
    return bytes(_x25519().X25519PrivateKey.generate().private_bytes_raw())


def public_key_of(private_key: bytes) -> str:
    """Return the public key of a private one, in hexadecimal.

    Examples
    --------
    >>> from tacit.pate.sites import new_private_key, public_key_of
    >>> len(public_key_of(new_private_key()))
    64
    """
    private = _x25519().X25519PrivateKey.from_private_bytes(private_key)
    return bytes(private.public_key().public_bytes_raw()).hex()


def mask_of(agreed: Round, site: int, private_key: bytes) -> Words:
    """Return the mask of a site: + for sites after it, - for those before.

    Examples
    --------
    >>> from tacit.pate.sites import Round, SiteEntry
    >>> from tacit.pate.sites import mask_of, new_private_key, public_key_of
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
    >>> from tacit.pate.sites import SiteVotes
    >>> SiteVotes.from_bytes(b"hello")
    Traceback (most recent call last):
    tacit.pate.sites.VotesRejected: 5 bytes are too few for votes; send whole messages.
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


# In standard deviations of the noise: counts further outside their range are rejected.
_PLAUSIBLE = 8.0


class VoteCollector:
    """Sum the votes of sites in one round.

    Parameters
    ----------
    agreed
        The round.

    Notes
    -----
    **Guarantee**

    1. A message counts once: equal bytes are ignored, other bytes of the same site are
       refused, and so are messages of other rounds.
    2. Without masks, winners are available as soon as all but ``n_missing`` sites have answered;
       with masks all must answer, since masks cancel only in the whole sum.

    **Trusted with**: without masks, each site's counts under a share of the noise, which is less
    protection than the sum has (`Round.share_event`). With masks, only the sum, unless it
    colludes with sites. It can always withhold or falsify answers.

    Examples
    --------
    See `TeacherSite`.
    """

    def __init__(self, agreed: Round) -> None:
        self.round = agreed
        self._met: dict[int, bytes] = {}
        self._total: Words = np.zeros((agreed.n_queries, agreed.n_classes), dtype=np.uint64)

    def add(self, data: bytes) -> bool:
        """Count a site's message; return False if it was counted before.

        Raises
        ------
        VotesRejected
            If it is not a message of this round, or differs from an earlier one of the site.
        """
        votes = SiteVotes.from_bytes(data)
        votes.check(self.round)
        if votes.site in self._met:
            if self._met[votes.site] == data:
                return False
            raise VotesRejected(
                f"{self.round.sites[votes.site].name} has already sent other votes in this round; "
                "two answers of one site would be two releases."
            )
        self._check_plausible(votes)
        self._met[votes.site] = data
        self._total += votes.steps  # modulo 2^64
        return True

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the sites that have not answered."""
        return tuple(site.name for i, site in enumerate(self.round.sites) if i not in self._met)

    @property
    def is_ready(self) -> bool:
        """Whether the winners can be computed."""
        most = 0 if self.round.masked else self.round.n_missing
        return len(self.missing) <= most

    def totals(self) -> npt.NDArray[np.float64]:
        """Return the noisy sum of all votes, for each query and class."""
        if not self.is_ready:
            wait = "all of them, since votes are masked" if self.round.masked else "more of them"
            raise VotesRejected(
                f"{len(self.missing)} sites have not answered ({', '.join(self.missing)}); wait "
                f"for {wait}. With less noise than agreed nothing may be released."
            )
        steps = self._total.view(np.int64).astype(np.float64)
        return steps * self.round.spacing

    def answers(self) -> Answers:
        """Return the class with the most votes, for each query."""
        winners: Answers = np.argmax(self.totals(), axis=1).astype(np.int64)
        return winners

    def guarantee(self, delta: float) -> Guarantee:
        """Return the guarantee of the sum, and of all its post-processing."""
        agreed = self.round
        k = len(agreed.sites)
        whom = (
            f"no more than {agreed.n_missing} of {k} sites drop out, or work together with each "
            "other or with the collector"
        )
        seen = () if agreed.masked else ("the collector is trusted with the votes of each site",)
        return Guarantee(agreed.sum_event, delta, (whom, *seen))

    def _check_plausible(self, votes: SiteVotes) -> None:
        """Refuse votes that an honest site sends with probability below 10^-14; not if masked.

        A count is in [0, n_teachers], the counts of a query add up to n_teachers, and each has
        noise of share_std. So a site can influence only its own teachers' votes.
        """
        agreed = self.round
        if agreed.masked:
            return
        counts = votes.steps.view(np.int64) * agreed.spacing
        noise = _PLAUSIBLE * agreed.share_std + agreed.spacing
        difference = np.abs(np.sum(counts, axis=1) - votes.n_teachers)
        within = np.all((counts >= -noise) & (counts <= votes.n_teachers + noise))
        if not within or np.any(difference > math.sqrt(agreed.n_classes) * noise):
            raise VotesRejected(
                f"the votes of {agreed.sites[votes.site].name} are not those of "
                f"{votes.n_teachers} teachers; they do not count."
            )


class TeacherSite:
    """A site that holds a part of the records; its teachers never leave it.

    Parameters
    ----------
    name
        The name of the site in rounds.
    teacher
        Any classifier.
    n_teachers
        The number of parts of its records, as in the rounds.
    folder
        A private folder for its key and its answers. A round is
        answered once: later calls, also after a crash, return the same bytes.
    classes
        The classes, which are public.
    delta
        The delta at which the accountant charges a round.
    accountant
        The site's own budget, charged before a teacher is trained; it may refuse.
    n_jobs, random_state
        As in `PATEClassifier`.

    Notes
    -----
    **Guarantee** (docs/proofs/pate.md, section 6)

    1. Every count that is sent has noise of ``share_std``. Without masks, that is all
       that protects it from the collector, and is charged; with masks, the charge is for
       the sum with all noise, of at least ``noise_std``.
    2. For one name of a round no two different messages are ever sent.
    3. A teacher that fails votes for a constant; nothing else is revealed.

    **Assumes**: with masks, that at most ``n_missing`` other sites collude with the
    collector, and that the keys in the round belong to the sites; that the folder is private.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from tacit.pate.sites import Round, TeacherSite, VoteCollector, digest_of
    >>> rng = np.random.default_rng(0)
    >>> X, queries = rng.standard_normal((3000, 2)), np.array([[-2.0, 0.0], [2.0, 0.0]])
    >>> folder = tempfile.TemporaryDirectory()
    >>> site = TeacherSite("north", GaussianNB(), 60, folder.name, classes=[False, True])
    >>> agreed = Round("may", (site.entry(),), 2, digest_of(queries), 2, noise_std=3.0)
    >>> collector = VoteCollector(agreed)
    >>> collector.add(site.answer(agreed, X, X[:, 0] > 0, queries))
    True
    >>> collector.answers().tolist()
    [0, 1]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        name: str,
        teacher: Any,
        n_teachers: int,
        folder: str | os.PathLike[str],
        *,
        classes: Any,
        delta: float = 1e-6,
        accountant: AnyAccountant | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        check_teacher(teacher)
        self.name, self.teacher, self.n_teachers = name, teacher, n_teachers
        self.folder = Path(folder)
        self.classes = classes_of(classes, None).value
        self.delta, self.accountant = delta, accountant
        self.n_jobs, self.random_state = n_jobs, random_state
        SiteEntry(name, n_teachers)  # raises for invalid values

    def entry(self, *, masked: bool = False) -> SiteEntry:
        """Return the entry of the site for a round, with its public key if votes will be masked."""
        key = public_key_of(self._private_key()) if masked else ""
        return SiteEntry(self.name, self.n_teachers, key)

    def answer(self, agreed: Round, X: Any, y: Any, queries: Any, unit: Any = None) -> bytes:
        """Return the site's message for a round; it is made once and then repeated.

        Parameters
        ----------
        agreed
            The round.
        X, y, unit
            The records, as in `PATEClassifier.fit`.
        queries
            The public rows, whose digest is in the round.
        """
        place = self._place(agreed, queries)
        votes_file = (
            self.folder / f"round-{hashlib.sha256(agreed.name.encode()).hexdigest()[:32]}.votes"
        )
        if not votes_file.exists():
            table = TableInMemory(X, y, unit)
            refuse_other_kinds(y, self.classes)
            made = self._made(agreed, place, table, np.asarray(queries, dtype=np.float64))
            _keep(votes_file, made.to_bytes())
        data = votes_file.read_bytes()
        if SiteVotes.from_bytes(data).round_digest != agreed.digest:
            raise VotesRejected(
                f"{self.name} has answered another round named {agreed.name!r}; a second "
                "answer would be a second release. Give the new round another name."
            )
        return data

    def _place(self, agreed: Round, queries: Any) -> int:
        """Return the site's position in a round, or refuse an inconsistent round."""
        names = [site.name for site in agreed.sites]
        if self.name not in names:
            raise VotesRejected(f"the round {agreed.name!r} does not have a site {self.name!r}.")
        place = names.index(self.name)
        if agreed.sites[place] != self.entry(masked=bool(agreed.sites[place].public_key)):
            raise VotesRejected("the round lists this site with other teachers or another key.")
        if digest_of(queries) != agreed.queries:
            raise VotesRejected("these are not the queries that the round is about.")
        if len(queries) != agreed.n_queries:  # the noise was chosen for this number
            raise VotesRejected(
                f"the round says that it has {agreed.n_queries} queries, and these are "
                f"{len(queries)}; agree on a round that counts them right."
            )
        if len(self.classes) != agreed.n_classes:
            raise VotesRejected("the round has another number of classes than this site.")
        return place

    def _made(self, agreed: Round, place: int, table: TableInMemory, queries: Any) -> SiteVotes:
        """Charge the round, let teachers vote, and return the noisy votes."""
        if table.has_people != agreed.relation.by_person:
            raise VotesRejected(
                "the round protects people and this site has no unit, or the other way round."
            )
        source = source_of(self.random_state)
        mask = mask_of(agreed, place, self._private_key()) if agreed.masked else None
        query = agreed.shared_votes(place, mask)
        event = query.event(agreed.facts)
        epsilon = Guarantee(event).epsilon(self.delta)
        plan = engine.Plan(
            "site_votes",
            event,
            Budget(epsilon, self.delta, agreed.relation),
            "votes with a share of the noise",
            facts=agreed.facts,
            paid={"votes": Slot(event)},
        )
        released = engine.release_answers(
            plan,
            lambda: self._votes(agreed.relation, table, queries, source),
            lambda session: session.ask(query, "votes"),
            accountant=self.accountant,
            source=source,
        )
        return SiteVotes(agreed.digest, place, self.n_teachers, released.value)

    def _votes(
        self, relation: Relation, table: TableInMemory, queries: Any, source: Source | None
    ) -> Iterator[VotesOfOne]:
        """Read the records, and let the teachers vote in turn."""
        rows, labels = table.read()
        if labels is None:
            raise ValueError("y is missing: teachers learn from labels.")
        codes, known = codes_of(labels, self.classes)
        people = read_people(table) if has_people(table) else None
        key = key_of(source)
        parts = places_of_parts(self.n_teachers, key, relation, rows, labels, people=people)
        own = [part[known[part]] for part in parts]
        return each_vote(
            self.teacher, own, rows, codes, self.classes, queries, key, n_jobs=self.n_jobs
        )

    def _private_key(self) -> bytes:
        path = self.folder / "site.key"
        if not path.exists():
            _keep(path, new_private_key())
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            raise ValueError("the site's key file is damaged; make a new one, and new rounds.")
        return key


def _keep(path: Path, data: bytes) -> None:
    """Write a file atomically, once: an existing file is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(part, path)  # unlike a rename, it never replaces a file
        _remember_name(path.parent)
    finally:
        part.unlink()


def _remember_name(folder: Path) -> None:
    """Flush the folder's new entry to disk, so that it survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
