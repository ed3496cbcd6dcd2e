"""Real clusters: two processes behind TLS, and workers that are killed all the time."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tacit.cluster import DaskRecords
from tacit.erm import NoisyGradient, NoisySGD, Objective, minimize
from tacit.erm.losses import LogisticLoss
from tacit.noise import seeded_source
from tacit.privacy import Budget
from tacit.records import RecordSource
from tests.cluster.helpers import BOUNDS, data, in_memory, in_parts, pairs

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def fitted(records: RecordSource, mechanism: Any) -> Any:
    objective = Objective(LogisticLoss(), BOUNDS)
    source = seeded_source(5)
    return minimize(records, objective, Budget(1.0, 1e-6), mechanism, source=source).weights


def clients(n_workers: int, **options: Any) -> Iterator[Any]:
    import dask
    from distributed import Client, LocalCluster, utils

    settings = {
        "distributed.scheduler.allowed-failures": 10_000,
        "distributed.worker.memory.terminate": False,
        # a worker starts from a process that has imported everything, in a moment
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    modules = ["distributed", "tacit.cluster", "tests.cluster.helpers"]
    multiprocessing.get_context("forkserver").set_forkserver_preload(modules)
    utils._forkserver_preload_set = True  # which would set its own
    usual = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, **options}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=n_workers, **usual) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def behind_tls() -> Iterator[Any]:
    from distributed.security import Security

    yield from clients(2, processes=True, security=Security.temporary(), protocol="tls://")


def test_two_processes_behind_tls_have_the_bits_of_one(behind_tls: Any) -> None:
    assert behind_tls.scheduler.address.startswith("tls://")
    parts = pairs(*data(), 150, 300, 450)
    records = DaskRecords.from_delayed(parts, 5, BOUNDS, behind_tls)
    pids = behind_tls.run(os.getpid)
    assert len(pids) == 2
    assert os.getpid() not in pids.values()
    exact, sampled = NoisyGradient(n_steps=5), NoisySGD(0.3, 2)
    assert np.array_equal(fitted(records, exact), fitted(in_memory(), exact))
    alike = in_parts(*data(), BOUNDS, 150, 300, 450)
    assert np.array_equal(fitted(records, sampled), fitted(alike, sampled))


def test_no_words_of_a_record_cross_the_wire(behind_tls: Any) -> None:
    def leaky(block: Any) -> Any:
        raise ValueError(f"secret {block.rows[0, 0]}")

    records = DaskRecords.from_delayed(pairs(*data(), 300), 5, BOUNDS, behind_tls)
    with pytest.raises(RuntimeError, match="failed with ValueError") as refused:
        records.sum(leaky)
    assert "secret" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_workers", "processes"), [(1, False), (2, False), (4, False), (4, True)]
)
def test_any_number_of_workers_has_the_same_bits(n_workers: int, processes: bool) -> None:
    expected = fitted(in_memory(), NoisyGradient(n_steps=10))
    for client in clients(n_workers, processes=processes):
        parts = pairs(*data(), 50, 100, 300, 301)
        records = DaskRecords.from_delayed(parts, 5, BOUNDS, client)
        assert np.array_equal(fitted(records, NoisyGradient(n_steps=10)), expected)
        newton = fitted(in_parts(*data(), BOUNDS, 50, 100, 300, 301), "objective_perturbation")
        assert np.array_equal(fitted(records, "objective_perturbation"), newton)


class Killer(threading.Thread):
    """Kill a worker's process every now and then, as long as it is let."""

    def __init__(self, client: Any, pause: float) -> None:
        super().__init__(daemon=True)
        self.client, self.pause, self.kills = client, pause, 0
        self.over = threading.Event()

    def run(self) -> None:
        rng = random.Random(0)
        while not self.over.wait(self.pause * rng.uniform(0.5, 1.5)):
            nannies = list(self.client.cluster.workers.values())
            pids = [nanny.pid for nanny in nannies if getattr(nanny, "pid", None)]
            if len(pids) < 2:
                continue  # leave one alone
            try:
                os.kill(rng.choice(pids), signal.SIGKILL)
                self.kills += 1
            except ProcessLookupError:
                pass


@pytest.mark.slow
def test_twenty_killed_workers_change_no_bit() -> None:
    mechanism = NoisyGradient(n_steps=40)
    expected = fitted(in_memory(), mechanism)
    for client in clients(3, processes=True):
        parts = pairs(*data(), 100, 200, 300, 400, 500)
        killer = Killer(client, 0.4)
        killer.start()
        start = time.monotonic()
        try:
            while killer.kills < 20 and time.monotonic() - start < 150:
                loads = [client.submit(slowly, pair, pure=False) for pair in parts]
                records = DaskRecords.from_delayed(loads, 5, BOUNDS, client)
                assert np.array_equal(fitted(records, mechanism), expected)
        finally:
            killer.over.set()
            killer.join()
        assert killer.kills >= 20


def slowly(pair: Any) -> Any:
    time.sleep(0.05)
    return pair
