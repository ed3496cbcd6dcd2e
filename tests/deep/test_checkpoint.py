"""A training that is killed goes on with the steps that are left, and is paid for once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tacit.deep import AdaptiveClip, CheckpointError
from tacit.deep.clipping.book_keeping import BookKeeper
from tacit.deep.records import TensorRecords
from tacit.ledger import Ledger, LedgerDamaged
from tacit.noise import seeded_source
from tacit.privacy import Accountant, Budget, Gaussian
from tests.deep.helpers import network, table, trainer

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from tacit.ledger import Ledger
from tests.deep.helpers import network, table, trainer

def die(moment):
    if moment.step == 4:
        os.kill(os.getpid(), signal.SIGKILL)

folder = sys.argv[1]
trainer(
    network(), accountant=Ledger.open(folder + "/ledger.db"), checkpoint=folder + "/run",
    checkpoint_every=3, callbacks=[die],
).fit(*table())
"""


def test_kill_9(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", Budget(10.0, 1e-4))
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert run.returncode == -signal.SIGKILL
    spent = ledger.spent()
    assert spent > 0  # the whole plan, though the process did not live to say so
    steps: list[int] = []
    made = trainer(
        network(),
        accountant=ledger,
        checkpoint=tmp_path / "run",
        checkpoint_every=3,
        callbacks=[lambda moment: steps.append(moment.step)],
    ).fit(*table())
    # Steps 1 to 3 were kept, step 4 was made and lost: it is not made again.
    assert steps == [5, 6]
    assert ledger.spent() == spent
    assert made.privacy_.event == made.plan_.event
    assert made.privacy_.booking is not None
    assert made.privacy_.booking.ledger == ledger.head.ledger


class Stop(Exception):
    pass


def stop_at(step: int) -> Any:
    def callback(moment: Any) -> None:
        if moment.step == step:
            raise Stop

    return callback


def interrupted(path: Path, step: int, **told: Any) -> None:
    with pytest.raises(Stop):
        trainer(network(), checkpoint=path, callbacks=[stop_at(step)], **told).fit(*table())


def test_what_is_kept_is_where_it_goes_on(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", 3, checkpoint_every=2)
    kept = torch.load(tmp_path / "run", weights_only=True)["descent"]
    model, seen = network(), []

    def first(moment: Any) -> None:
        seen.append(moment.step)

    made = trainer(model, checkpoint=tmp_path / "run", callbacks=[first], checkpoint_every=2)
    made.fit(*table())
    assert seen == [4, 5, 6]
    assert not torch.equal(kept["parameters"][0], next(iter(model.parameters())))
    final = [p.clone() for p in model.parameters()]
    again = network()  # all steps are made: nothing is left but to read the weights
    read = trainer(again, checkpoint=tmp_path / "run").restore()
    assert all(torch.equal(a, b) for a, b in zip(final, again.parameters(), strict=True))
    assert read.privacy_.event == made.privacy_.event


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_training_that_has_ended_is_not_returned_for_other_records(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", Budget(10.0, 1e-4))
    path, first = tmp_path / "run", network()
    trainer(first, checkpoint=path, accountant=ledger).fit(*table())
    spent, rows = ledger.spent(), -table()[0]
    other = network()
    fresh = weights(other)
    with pytest.raises(CheckpointError, match=r"has ended.*restore\(\)"):
        trainer(other, checkpoint=path, accountant=ledger).fit(rows, table()[1])
    assert torch.equal(weights(other), fresh)
    assert ledger.spent() == spent
    restored = trainer(other, checkpoint=path, accountant=ledger).restore()
    assert torch.equal(weights(other), weights(first))
    assert ledger.spent() == spent  # it is paid for there
    assert restored.privacy_.booking == ledger.head
    elsewhere = Ledger.create(tmp_path / "other.db", Budget(10.0, 1e-4))
    trainer(network(), checkpoint=path, accountant=elsewhere).restore()
    assert elsewhere.spent() == spent


def test_a_training_that_was_stopped_has_ended(tmp_path: Path) -> None:
    path, model = tmp_path / "run", network()
    trainer(model, checkpoint=path, callbacks=[lambda moment: moment.step == 4]).fit(*table())
    with pytest.raises(CheckpointError, match="has ended"):
        trainer(checkpoint=path).fit(*table())
    other = network()
    trainer(other, checkpoint=path).restore()
    assert torch.equal(weights(other), weights(model))


def test_a_training_that_goes_on_is_not_restored(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint"):
        trainer(checkpoint=tmp_path / "run").restore()
    with pytest.raises(CheckpointError, match="no checkpoint"):
        trainer().restore()
    interrupted(tmp_path / "run", 3, checkpoint_every=1)
    with pytest.raises(CheckpointError, match="has not ended"):
        trainer(checkpoint=tmp_path / "run").restore()


def test_assumptions_of_the_records_are_restored(tmp_path: Path) -> None:
    rows, labels = table()
    dataset = list(zip(rows, labels, strict=True))
    made = trainer(checkpoint=tmp_path / "run").fit(dataset)
    assert made.privacy_.assumptions
    restored = trainer(checkpoint=tmp_path / "run").restore()
    assert restored.privacy_.assumptions == made.privacy_.assumptions


def bound(ledger: Ledger, what: str, name: str) -> Ledger:
    return ledger.bound(**{what: name})  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["partition", "analyst"])
def test_a_charge_elsewhere_does_not_pay(tmp_path: Path, what: str) -> None:
    """Paid for with january's records, the steps that are left are not made with february's."""
    ledger = Ledger.create(tmp_path / "ledger.db", Budget(10.0, 1e-4))
    for name in ("january", "february"):
        if what == "partition":
            ledger.add_partition(name)
        else:
            ledger.add_analyst(name, 5.0)
    path = tmp_path / "run"
    interrupted(path, 1, accountant=bound(ledger, what, "january"))
    entries = ledger.head.entry
    looks: list[Any] = []
    february = trainer(
        checkpoint=path, accountant=bound(ledger, what, "february"), callbacks=[looks.append]
    )
    with pytest.raises(CheckpointError, match=f"{what}='january'.*{what}='february'"):
        february.fit(*table())
    with pytest.raises(CheckpointError, match=f"{what}='january'.*{what}=None"):
        trainer(checkpoint=path, accountant=ledger).fit(*table())
    assert ledger.head.entry == entries
    assert not looks
    january = trainer(checkpoint=path, accountant=bound(ledger, what, "january"))
    january.fit(*table())
    assert ledger.head.entry == entries


def test_an_entry_for_another_release_does_not_pay(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", Budget(10.0, 1e-4))
    other = ledger.charge(Gaussian(20.0)).booking
    interrupted(tmp_path / "run", 1, accountant=ledger)
    steps = tmp_path / "run.steps"
    head, _, rest = steps.read_bytes().partition(b"\n")
    forged = json.dumps({**json.loads(head), "booking": other.to_dict()}).encode()
    steps.unlink()
    steps.write_bytes(forged + b"\n" + rest)
    with pytest.raises(CheckpointError, match="another release"):
        trainer(checkpoint=tmp_path / "run", accountant=ledger).fit(*table())


def test_records_that_could_not_be_opened_are_paid_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are opened after the charge was written down, and before a step is."""
    ledger = Ledger.create(tmp_path / "ledger.db", Budget(10.0, 1e-4))

    def breaks(self: TensorRecords) -> TensorRecords:
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(TensorRecords, "opened", breaks)
        with pytest.raises(Stop):
            trainer(checkpoint=tmp_path / "run", accountant=ledger).fit(*table())
    spent, steps = ledger.spent(), list[int]()
    told: dict[str, Any] = {"callbacks": [lambda moment: steps.append(moment.step)]}
    trainer(checkpoint=tmp_path / "run", accountant=ledger, **told).fit(*table())
    assert ledger.spent() == spent > 0
    assert steps == [1, 2, 3, 4, 5, 6]


def test_a_step_is_on_the_disk_before_a_record_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that loses its power must not forget a step that was begun."""
    happened: list[str] = []
    fsync, write, sums = os.fsync, os.write, BookKeeper.sums

    def synced(handle: int) -> None:
        happened.append("sync")
        fsync(handle)

    def written(handle: int, data: bytes) -> int:
        happened.append("write" if data == b"." else "other")
        return write(handle, data)

    def read(self: Any, *args: Any, **told: Any) -> Any:
        happened.append("read")
        return sums(self, *args, **told)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "write", written)
    monkeypatch.setattr(BookKeeper, "sums", read)
    trainer(checkpoint=tmp_path / "run").fit(*table())
    reads = [place for place, what in enumerate(happened) if what == "read"]
    assert len(reads) == 6
    assert all(happened[place - 2 : place] == ["write", "sync"] for place in reads)


def test_a_notebook_goes_on_after_an_interruption(tmp_path: Path) -> None:
    steps: list[int] = []

    def once(moment: Any) -> None:
        steps.append(moment.step)
        if steps == [1, 2, 3]:
            raise Stop

    made = trainer(checkpoint=tmp_path / "run", callbacks=[once], checkpoint_every=1)
    with pytest.raises(Stop):
        made.fit(*table())
    made.fit(*table())
    assert steps == [1, 2, 3, 4, 5, 6]
    with pytest.raises(RuntimeError, match="has trained its model"):
        made.fit(*table())


@pytest.mark.slow
def test_momentum_averages_and_clips_go_on(tmp_path: Path) -> None:
    told: dict[str, Any] = {"average_last": 1.0, "clip": AdaptiveClip(0.5, count_noise=0.5)}

    model = network()
    interrupted(tmp_path / "run", 4, checkpoint_every=1, **told)
    kept = torch.load(tmp_path / "run", weights_only=True)
    assert kept["norm"] != 0.5
    assert kept["descent"]["n_averaged"] == 4
    trainer(
        model,
        checkpoint=tmp_path / "run",
        optimizer=torch.optim.SGD(model.parameters(), 0.5),
        **told,
    ).fit(*table())
    assert torch.load(tmp_path / "run", weights_only=True)["descent"]["n_averaged"] == 6


def test_an_accountant_in_memory_is_charged_by_each_process_that_uses_it(tmp_path: Path) -> None:
    """It cannot know what another one charged; never less than was released."""
    interrupted(tmp_path / "run", 3, accountant=Accountant(Budget(10.0, 1e-4)))
    other = Accountant(Budget(10.0, 1e-4))
    made = trainer(checkpoint=tmp_path / "run", accountant=other).fit(*table())
    assert other.events == (made.plan_.event,)


@pytest.mark.slow
def test_another_ledger_is_charged(tmp_path: Path) -> None:
    first = Ledger.create(tmp_path / "first.db", Budget(10.0, 1e-4))
    other = Ledger.create(tmp_path / "other.db", Budget(10.0, 1e-4))
    interrupted(tmp_path / "run", 3, accountant=first)
    trainer(checkpoint=tmp_path / "run", accountant=other).fit(*table())
    assert other.spent() == first.spent() > 0


def test_the_steps_are_written_before_a_record_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def look(self: Any, *args: Any, **told: Any) -> Any:
        begun.append((tmp_path / "run.steps").read_bytes().count(b"."[0:1]))
        raise Stop

    monkeypatch.setattr(BookKeeper, "sums", look)
    with pytest.raises(Stop):
        trainer(checkpoint=tmp_path / "run").fit(*table())
    head = (tmp_path / "run.steps").read_bytes().partition(b"\n")
    assert head[2] == b"."
    assert json.loads(head[0])["settings"]["n_steps"] == 6


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "run"
    interrupted(path, 2)
    with pytest.raises(CheckpointError, match="another plan"):
        trainer(checkpoint=path, n_steps=7, noise_multiplier=6.0).fit(*table())
    with pytest.raises(ValueError, match="repeat its noise"):
        trainer(checkpoint=path, source=seeded_source(1))
    steps = tmp_path / "run.steps"
    whole = steps.read_bytes()
    for damaged in (whole[3:], whole + b"x", b"{}\n", np.random.default_rng(0).bytes(40)):
        steps.unlink()
        steps.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            trainer(checkpoint=path).fit(*table())


@pytest.mark.parametrize("n_left", [0, 1])
def test_steps_that_were_cut_off_are_not_made_again(tmp_path: Path, n_left: int) -> None:
    interrupted(tmp_path / "run", 2, checkpoint_every=1)
    steps = tmp_path / "run.steps"
    os.truncate(steps, steps.stat().st_size - 2 + n_left)
    with pytest.raises(CheckpointError, match="fewer steps"):
        trainer(checkpoint=tmp_path / "run").fit(*table())


def test_a_ledger_that_was_put_back_has_not_paid(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger.create(path, Budget(10.0, 1e-4))
    before = path.read_bytes()
    interrupted(tmp_path / "run", 2, accountant=ledger)
    path.unlink()
    path.write_bytes(before)
    with pytest.raises(LedgerDamaged, match="older"):
        trainer(checkpoint=tmp_path / "run", accountant=Ledger.open(path)).fit(*table())


def test_one_process_at_a_time(tmp_path: Path) -> None:
    def another(moment: Any) -> None:
        with pytest.raises(CheckpointError, match="in use"):
            trainer(checkpoint=tmp_path / "run").fit(*table())

    trainer(checkpoint=tmp_path / "run", callbacks=[another]).fit(*table())


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_a_training_that_lost_its_checkpoint_is_not_begun_again(tmp_path: Path, how: str) -> None:
    """It would go on from weights in memory, and make all its steps a second time."""
    made = trainer(checkpoint=tmp_path / "run", callbacks=[stop_at(5)], checkpoint_every=1)
    with pytest.raises(Stop):
        made.fit(*table())
    if how == "deleted":
        (tmp_path / "run").unlink()
        (tmp_path / "run.steps").unlink()
    else:
        made.checkpoint = type(made.checkpoint)(tmp_path / "other")  # type: ignore[misc]
    with pytest.raises(RuntimeError, match="has trained its model"):
        made.fit(*table())


def test_a_callback_does_not_train(tmp_path: Path) -> None:
    asked: list[str] = []

    def again(moment: Any) -> None:
        for ask in (lambda: made.fit(*table()), made.restore):
            with pytest.raises(RuntimeError, match="training now"):
                ask()
            asked.append("refused")

    made = trainer(checkpoint=tmp_path / "run", callbacks=[again])
    made.fit(*table())
    assert len(asked) == 12


def test_weights_of_another_shape_are_refused_before_the_charge(tmp_path: Path) -> None:
    trainer(checkpoint=tmp_path / "run").fit(*table())
    accountant = Accountant(Budget(10.0, 1e-4))
    wide = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2))
    with pytest.raises(ValueError, match="another shape"):
        trainer(wide, checkpoint=tmp_path / "run", accountant=accountant).restore()
    assert not accountant.events


def test_what_was_assumed_of_the_first_records_is_still_assumed(tmp_path: Path) -> None:
    rows, labels = table()
    dataset = list(zip(rows, labels, strict=True))
    with pytest.raises(Stop):
        trainer(checkpoint=tmp_path / "run", callbacks=[stop_at(2)]).fit(dataset)
    made = trainer(checkpoint=tmp_path / "run").fit(rows, labels)
    assert any("first item" in line for line in made.privacy_.assumptions)


def test_an_end_without_weights_is_said_to_be_one(tmp_path: Path) -> None:
    interrupted(tmp_path / "run", 6, checkpoint_every=100)
    (tmp_path / "run").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="were lost"):
        trainer(checkpoint=tmp_path / "run").fit(*table())
    with pytest.raises(CheckpointError, match="there are none"):
        trainer(checkpoint=tmp_path / "run").restore()
