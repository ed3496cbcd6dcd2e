"""What CONTRIBUTING says of adding an aggregator, done by script: a file, a line, it is audited."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tacit

AGGREGATOR = '''
"""Release which of two classes has two thirds of the votes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr

from tacit.pate.aggregators.base import Aggregator
from tacit.privacy import Budget, Event
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries.votes import Leads, Majorities, Votes


@dataclass(frozen=True)
class TwoThirds(Aggregator):
    """Release the second class where more than two thirds vote for it, else the first."""

    noise_std: float | None = None

    name = "two_thirds"
    reason = "the second class where two thirds vote for it, Gaussian noise on both counts"
    use = "two classes, where a false alarm is dear"
    cost = "that of `Majority`"
    proof = "pate.md#3-two-classes-only-the-winner-leaves"
    most_classes = 2

    def least_noise(self, budget: Budget, n_queries: int) -> dict[str, float]:
        """Return the least noise within the budget."""

        def family(noise_std: float) -> Event:
            return TwoThirds(noise_std).event(n_queries, budget.relation)

        return {{"noise_std": {factor} * least_noise(family, budget)}}

    def queries(self, votes: Votes) -> dict[str, Majorities]:
        """Return one query: the noisy winner of each row."""
        leads = Leads(votes.n_queries, votes.n_teachers, 2 / 3)
        return {{"winners": Majorities(leads, self.decided("noise_std"))}}

    def right(self, consensus: float, n_teachers: int) -> float:
        """Return the probability that the first class is found."""
        lead = (2.0 * consensus - 2.0 / 3.0) * n_teachers
        return float(ndtr(lead / (math.sqrt(2.0) * self.decided("noise_std"))))
'''
NEW, REGISTRY = "pate/aggregators/two_thirds.py", "pate/aggregators/__init__.py"
LINE = "from tacit.pate.aggregators.two_thirds import TwoThirds as TwoThirds\n"
BEFORE = "\n_NAMED = "
AUDITS = ["tests/pate/test_aggregators.py", "tests/test_everything_is_checked.py"]
MESSAGE = """
import aggregators
from tacit.pate import PATEClassifier
print(aggregators.table())
try:
    PATEClassifier(aggregator="best").plan(2)
except TypeError as why:
    print(why)
"""
ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def added(folder: Path, factor: float) -> Path:
    """Write the file and the line into a copy of tacit."""
    made = folder / "tacit"
    shutil.copytree(Path(tacit.__file__).parent, made)
    (made / NEW).write_text(AGGREGATOR.format(factor=factor).lstrip())
    names = (made / REGISTRY).read_text()
    assert BEFORE in names
    (made / REGISTRY).write_text(names.replace(BEFORE, LINE + BEFORE, 1))
    return made


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy of tacit."""
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tools")])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def audited(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the conformance tests on the copy."""
    return run(folder, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", *AUDITS)


def changed(made: Path) -> set[str]:
    """Return the files of the copy that are new or differ from tacit's."""
    source = Path(tacit.__file__).parent
    names = [path.relative_to(made) for path in made.rglob("*.py")]
    _, *others = filecmp.cmpfiles(source, made, map(str, names), shallow=False)
    return {name for names in others for name in names}


def test_one_file_and_one_line_are_enough(tmp_path: Path) -> None:
    made = added(tmp_path, factor=1.0)
    assert changed(made) == {NEW, REGISTRY}
    done = audited(tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    said = run(tmp_path, "-c", MESSAGE)
    assert "| `TwoThirds` | the second class where" in said.stdout, said.stderr
    assert "LNMax(), TwoThirds() of tacit.pate.aggregators" in said.stdout


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_wrong_constant_is_caught(tmp_path: Path, factor: float) -> None:
    added(tmp_path, factor)
    done = audited(tmp_path)
    assert done.returncode == 1
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert any("test_its_noise_is_the_least_within_the_budget" in line for line in failed)
    assert all("TwoThirds" in line for line in failed), failed
