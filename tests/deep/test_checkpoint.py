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
from tacit.ledger import Ledger, LedgerDamaged
from tacit.noise import seeded_source
from tacit.privacy import Accountant, Budget
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
    trainer(again, checkpoint=tmp_path / "run").fit(*table())
    assert all(torch.equal(a, b) for a, b in zip(final, again.parameters(), strict=True))


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
    from tacit.deep.clipping import BookKeeper

    begun: list[int] = []

    def look(self: Any, *args: Any) -> Any:
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
