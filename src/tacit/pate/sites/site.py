"""Run a site: local teachers, and votes that are sent with a share of the noise."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit import engine
from tacit.estimators.parameters import classes_of, codes_of, refuse_other_kinds, source_of
from tacit.noise import Source
from tacit.pate._base import check_teacher, key_of
from tacit.pate.sites.messages import (
    KEY_BYTES,
    SiteVotes,
    VotesRejected,
    mask_of,
    new_private_key,
    public_key_of,
)
from tacit.pate.sites.round import Round, SiteEntry, digest_of
from tacit.pate.teachers import Votes, each_vote
from tacit.privacy import AnyAccountant, Budget, Guarantee, Relation
from tacit.queries import Slot
from tacit.records.lazy_table import TableInMemory, has_people, read_people
from tacit.records.splits import places_of_parts


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
    ) -> Iterator[Votes]:
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
