"""Sites and their collector: the noise adds up, masks cancel, nobody counts twice."""

from __future__ import annotations

import math
import os
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest
from sklearn.naive_bayes import GaussianNB

from tacit.noise import recording
from tacit.pate.sites import Round, TeacherSite, VoteCollector, VotesRejected, digest_of
from tacit.pate.sites.messages import SiteVotes
from tacit.pate.sites.round import SiteEntry
from tacit.privacy import (
    Accountant,
    Budget,
    BudgetExceeded,
    Gaussian,
    Guarantee,
    Relation,
    SumOfEpsilons,
)
from tacit.queries import Held, Session, Slot
from tacit.testing import replay
from tests.pate.helpers import Fragile, OrderedTree, table

ROWS, LABELS, POOL = table(900)
NAMES = ("north", "south", "west")


def sites_of(folder: Path, teacher: Any = None, **more: Any) -> list[TeacherSite]:
    teacher = GaussianNB() if teacher is None else teacher
    return [
        TeacherSite(name, teacher, 10, folder / name, classes=[0, 1, 2], **more) for name in NAMES
    ]


def round_of(sites: list[TeacherSite], *, masked: bool = False, **more: Any) -> Round:
    entries = tuple(site.entry(masked=masked) for site in sites)
    settings = {"noise_std": 2.0, "n_missing": 1, "name": "may", **more}
    return Round(
        sites=entries, n_classes=3, queries=digest_of(POOL), n_queries=40, masked=masked, **settings
    )


def part(i: int) -> tuple[Any, Any]:
    return ROWS[300 * i : 300 * (i + 1)], LABELS[300 * i : 300 * (i + 1)]


@pytest.mark.parametrize("masked", [False, True])
def test_a_round(masked: bool, tmp_path: Path) -> None:
    sites = sites_of(tmp_path)
    agreed = round_of(sites, masked=masked)
    collector = VoteCollector(agreed)
    sent = [site.answer(agreed, *part(i), POOL) for i, site in enumerate(sites)]
    assert all(collector.add(data) for data in sent)
    assert not collector.add(sent[1])  # a repetition
    assert collector.missing == ()
    totals = collector.totals()
    # 30 teachers, noise of about 2 on each of three counts
    assert abs(np.mean(totals.sum(axis=1)) - 30) < 8 * 2.5 * math.sqrt(3 / 40)
    truth = np.searchsorted(np.quantile(ROWS[:, 0], [1 / 3, 2 / 3]), POOL[:, 0])
    assert np.mean(collector.answers() == truth) > 0.5
    promise = collector.guarantee(1e-5)
    assert promise.event == Gaussian(2.0 / math.sqrt(80))
    assert ("trusted" in promise.statement()) != masked


def test_same_round_same_bytes(tmp_path: Path) -> None:
    sites = sites_of(tmp_path)
    agreed = round_of(sites, masked=True)
    first = sites[0].answer(agreed, *part(0), POOL)
    again = sites_of(tmp_path)[0].answer(agreed, *part(0), POOL)  # another object, as after a crash
    assert first == again
    with pytest.raises(VotesRejected, match="another round named"):
        sites[0].answer(round_of(sites, masked=True, noise_std=1.0), *part(0), POOL)
    other = round_of(sites, masked=True, name="june")
    assert sites[0].answer(other, *part(0), POOL) != first


def test_an_answer_is_on_disk_by_its_name_before_it_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, link, fsync = list[str](), os.link, os.fsync

    def linked(part: Any, path: Any) -> None:
        done.append("link")
        link(part, path)

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(os, "fsync", synced)
    sites = sites_of(tmp_path)
    sites[0].answer(round_of(sites), *part(0), POOL)
    assert done == ["file", "link", "folder"]


def test_what_a_site_keeps_is_its_own(tmp_path: Path) -> None:
    sites = sites_of(tmp_path)
    sites[0].answer(round_of(sites, masked=True), *part(0), POOL)
    kept = list(sites[0].folder.iterdir())
    assert len(kept) == 2  # its key and its answer
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


def test_a_site_pays_once_and_may_refuse(tmp_path: Path) -> None:
    for masked, event in ((True, "sum_event"), (False, "share_event")):
        purse = Accountant(Budget(60.0, 1e-5), SumOfEpsilons())
        sites = sites_of(tmp_path / str(masked), delta=1e-5, accountant=purse)
        agreed = round_of(sites, masked=masked)
        for _ in range(2):
            sites[0].answer(agreed, *part(0), POOL)
        expected = Guarantee(getattr(agreed, event)).epsilon(1e-5)
        assert purse.spent() == pytest.approx(expected, rel=1e-6)
    poor = sites_of(tmp_path / "poor", OrderedTree(), accountant=Accountant(Budget(0.1, 1e-5)))
    with pytest.raises(BudgetExceeded):
        poor[0].answer(round_of(poor), *part(0), POOL)
    assert not list((tmp_path / "poor").rglob("*.votes"))


def test_what_the_collector_sees_of_a_site_costs_more_than_the_sum(tmp_path: Path) -> None:
    agreed = round_of(sites_of(tmp_path))
    share, whole = (Guarantee(e).epsilon(1e-5) for e in (agreed.share_event, agreed.sum_event))
    assert share > 1.2 * whole


def test_masks_hide_and_cancel(tmp_path: Path) -> None:
    sites = sites_of(tmp_path)
    agreed = round_of(sites, masked=True, noise_std=1e-3, n_missing=0)
    sent = [site.answer(agreed, *part(i), POOL) for i, site in enumerate(sites)]
    steps = [SiteVotes.from_bytes(data).steps for data in sent]
    for one in steps:
        # words of 64 bits look uniform: their top bit is 0 and 1 alike, far from any count
        assert abs(np.mean(one >> np.uint64(63)) - 0.5) < 6.2 * 0.5 / math.sqrt(120)
    total = sum(steps[1:], start=steps[0]).view(np.int64) * agreed.spacing
    np.testing.assert_allclose(total.sum(axis=1), 30.0, atol=0.1)
    pair = (steps[0] + steps[1]).view(np.int64) * agreed.spacing
    assert np.abs(pair).max() > 1e6  # two of three are no sum


def test_drop_outs(tmp_path: Path) -> None:
    sites = sites_of(tmp_path)
    plain, masked = (
        VoteCollector(round_of(sites)),
        VoteCollector(round_of(sites, masked=True, name="hidden")),
    )
    for collector in (plain, masked):
        collector.add(sites[0].answer(collector.round, *part(0), POOL))
        with pytest.raises(VotesRejected, match="south, west"):
            collector.answers()
        collector.add(sites[2].answer(collector.round, *part(2), POOL))
    assert plain.answers().shape == (40,)
    with pytest.raises(VotesRejected, match="masked"):
        masked.answers()


def changed(data: bytes, at: int, value: bytes) -> bytes:
    import zlib

    body = data[:at] + value + data[at + len(value) : -4]
    return body + struct.pack("<I", zlib.crc32(body))


def test_lies_and_damage(tmp_path: Path) -> None:
    sites = sites_of(tmp_path)
    agreed = round_of(sites)
    data = sites[0].answer(agreed, *part(0), POOL)
    collector = VoteCollector(agreed)
    teachers = struct.calcsize("<4sH32sH")
    for bad, why in (
        (data[:-1], "bytes"),
        (b"", "too few"),
        (b"x" * len(data), "begin"),
        (data[:90] + bytes([data[90] ^ 1]) + data[91:], "checksum"),
        (changed(data, 4, struct.pack("<H", 9)), "version 9"),
        (changed(data, 6, bytes(32)), "another round"),
        (changed(data, 38, struct.pack("<H", 7)), "does not have"),
        (changed(data, teachers, struct.pack("<I", 11)), "11 teachers"),
    ):
        with pytest.raises(VotesRejected, match=why):
            collector.add(bad)
    inflated = SiteVotes.from_bytes(data)
    more = inflated.steps + np.uint64(round(20 / agreed.spacing))
    with pytest.raises(VotesRejected, match="not those of"):
        collector.add(SiteVotes(agreed.digest, 0, 10, more).to_bytes())
    assert collector.add(data)
    other = SiteVotes(agreed.digest, 0, 10, inflated.steps + np.uint64(1)).to_bytes()
    with pytest.raises(VotesRejected, match="already sent"):
        collector.add(other)
    assert collector.missing == ("south", "west")


def test_a_site_refuses_what_was_not_agreed(tmp_path: Path) -> None:
    site = sites_of(tmp_path)[0]
    agreed = round_of(sites_of(tmp_path))
    with pytest.raises(VotesRejected, match="queries"):
        site.answer(agreed, *part(0), POOL[::-1])
    odd = tuple(SiteEntry(s.name, 99) for s in agreed.sites)
    with pytest.raises(VotesRejected, match="other teachers"):
        site.answer(Round("m", odd, 3, agreed.queries, 40, 2.0), *part(0), POOL)
    with pytest.raises(VotesRejected, match="people"):
        site.answer(agreed, *part(0), POOL, unit=list(range(300)))
    with pytest.raises(VotesRejected, match="does not have a site"):
        site.answer(Round("m", odd[1:], 3, agreed.queries, 40, 2.0), *part(0), POOL)


@pytest.mark.parametrize("n_queries", [1, 39, 41])
def test_a_round_that_miscounts_its_queries_is_refused_before_it_is_paid(
    n_queries: int, tmp_path: Path
) -> None:
    # noise is for as many queries as the round says: 40 answers under the noise of one would leak
    paid = Accountant(Budget(1000.0, 1e-5))
    site = sites_of(tmp_path, accountant=paid)[0]
    entries = round_of(sites_of(tmp_path)).sites
    wrong = Round("m", entries, 3, digest_of(POOL), n_queries, 2.0)
    with pytest.raises(VotesRejected, match=f"{n_queries} queries"):
        site.answer(wrong, *part(0), POOL)
    assert paid.spent() == 0.0
    assert not list(tmp_path.rglob("round-*"))


def test_keys_that_are_none_are_refused_before_a_round_is_paid(tmp_path: Path) -> None:
    paid = Accountant(Budget(1000.0, 1e-5))
    sites = sites_of(tmp_path, accountant=paid)
    first, second, third = round_of(sites, masked=True).sites
    with pytest.raises(ValueError, match="hexadecimal"):
        SiteEntry("south", 10, "z" * 64)
    with pytest.raises(ValueError, match="key of its own"):
        Round(
            "m", (first, second, SiteEntry("x", 10, second.public_key)), 3, digest_of(POOL), 40, 2.0
        )
    # of low order: everybody knows the secret that it makes
    weak = (first, second, SiteEntry("west", 10, "0" * 64))
    with pytest.raises(VotesRejected, match="key of west"):
        sites[0].answer(Round("m", weak, 3, digest_of(POOL), 40, 2.0, masked=True), *part(0), POOL)
    assert paid.spent() == 0.0
    assert third.public_key


@pytest.mark.parametrize("size", [60.0, 2.0**40])
def test_a_site_cannot_claim_more_votes_for_a_class_than_it_has_teachers(
    size: float, tmp_path: Path
) -> None:
    sites = sites_of(tmp_path)
    agreed = round_of(sites)
    collector = VoteCollector(agreed)
    votes = SiteVotes.from_bytes(sites[0].answer(agreed, *part(0), POOL))
    swayed = votes.steps.copy()
    moved = np.uint64(round(size / agreed.spacing))
    # what one class gains another loses: the sum is as it should be
    swayed[7] += np.array([moved, -np.array(moved), 0], dtype=np.uint64)
    with pytest.raises(VotesRejected, match="not those of"):
        collector.add(SiteVotes(agreed.digest, 0, 10, swayed).to_bytes())
    assert len(collector.missing) == 3


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[1]", b"\xff", b'{"format":"tacit-round","version":2}', b"[" * 9999],
)
def test_what_is_no_round_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no round"):
        Round.from_bytes(data)


def test_a_round_is_its_bytes(tmp_path: Path) -> None:
    agreed = round_of(sites_of(tmp_path), masked=True)
    assert Round.from_bytes(agreed.to_bytes()) == agreed
    with pytest.raises(ValueError, match="as tacit writes it"):
        Round.from_bytes(agreed.to_bytes() + b" ")
    with pytest.raises(ValueError, match="rounded"):
        round_of(sites_of(tmp_path), noise_std=5000.0)
    with pytest.raises(ValueError, match="public key"):
        Round("m", (SiteEntry("a", 3),), 2, agreed.queries, 4, 1.0, masked=True)


def test_the_noise_of_all_sites_is_that_of_the_sum() -> None:
    """Three shares of variance sigma^2 / 2, so that any two of them are enough."""
    queries = np.zeros((20_000, 1))
    entries = tuple(SiteEntry(name, 10) for name in NAMES)
    agreed = Round("may", entries, 2, digest_of(queries), 20_000, noise_std=8.0, n_missing=1)
    noise = np.zeros((20_000, 2))
    for _ in NAMES:
        counts = np.tile([[7.0, 3.0]], (20_000, 1))
        query, facts = agreed.shared_votes(0), agreed.facts
        session = Session(None, facts, query.event(facts), {"votes": Slot(query.event(facts))})
        sent = session.ask(query, "votes", of=Held(counts, query.votes)).view(np.int64)
        noise += sent * agreed.spacing - counts
    spread = 8.0 * math.sqrt(3 / 2)
    assert kstest(noise.ravel() / spread, ndtr).pvalue > 1e-9
    for factor in (0.9, 1.1):
        assert kstest(noise.ravel() / (factor * spread), ndtr).pvalue < 1e-9
    assert np.all(noise / agreed.spacing == np.rint(noise / agreed.spacing))


@pytest.mark.parametrize("ratio", [0.6, 0.9, 1.3])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_rounded_shares_add_up_to_one_gaussian(k: int, ratio: float) -> None:
    """The sum of k rounded Gaussians is, but for aliases, one Gaussian and k - 1 uniforms, rounded.

    Exact laws at lattices a thousand times coarser than in use, where aliases can be seen at all.
    """
    n = np.arange(-40, 41)
    one = ndtr((n + 0.5) / ratio) - ndtr((n - 0.5) / ratio)
    total = one
    for _ in range(k - 1):
        total = np.convolve(total, one)
    places = np.arange(-40 * k, 40 * k + 1)
    # N(0, k ratio^2) + k - 1 uniforms, by a fine grid of the uniforms' sum
    fine = 64
    uniform = np.full(fine, 1.0 / fine)
    sums = np.ones(1)
    for _ in range(k - 1):
        sums = np.convolve(sums, uniform)
    shifts = (np.arange(sums.size) - (sums.size - 1) / 2) / fine
    spread = ratio * math.sqrt(k)
    edges = places[:, None] - shifts
    target = (ndtr((edges + 0.5) / spread) - ndtr((edges - 0.5) / spread)) @ sums
    alias = 2.1 * math.exp(-0.5 * (math.pi * ratio) ** 2)
    assert np.abs(total - target).max() <= (k + 1) * alias * (1 + alias) ** k + 1e-5
    if ratio > 1.0:
        assert np.abs(total - target).max() < 2e-3 < np.abs(total[1:] - target[:-1]).max()


def test_a_record_moves_one_teacher_of_one_site(tmp_path: Path) -> None:
    runs = iter(range(10))

    def fit(data: Any) -> bytes:
        sites = sites_of(tmp_path / str(next(runs)), OrderedTree(), random_state=3)
        agreed = round_of(sites)
        return sites[0].answer(agreed, data[0], data[1], POOL)

    more = np.vstack([ROWS[:300], [[90.0, 90.0, -90.0]]]), np.append(LABELS[:300], 2)
    assert replay(fit, part(0), more) == replay(fit, more, part(0)) == 1


def test_a_failing_teacher_is_a_vote(tmp_path: Path) -> None:
    site = sites_of(tmp_path, Fragile("raise"))[0]
    rows = ROWS[:300].copy()
    rows[::2] = 99.0
    agreed = round_of(sites_of(tmp_path), noise_std=0.01, relation=Relation.ADD_REMOVE)
    with recording() as seen:
        site.answer(agreed, rows, LABELS[:300], POOL)
    entry: Any = seen.entries[0]
    assert entry.bounded.value[:, 0].min() == 10.0
