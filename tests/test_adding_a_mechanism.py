"""Add a mechanism by script: a file, a line, its proof and its page; all tests find it.

A mechanism that asks for less noise than it planned, or plans for more than its budget, is caught.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.added_by_script import Copy, failures

MECHANISM = '''
"""One gradient step from zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.erm.plan import Solved
from tacit.erm.plan import CannotSolve, Mechanism, Plan, Problem, Settings
from tacit.privacy import Budget, Event
from tacit.privacy.accounting.calibration import least_noise
from tacit.queries import Facts, GaussianNoise, Gradient, NoisySum, Session, Slot


@dataclass(frozen=True)
class StepSettings(Settings):
    """The clipping norm, and the noise multiplier of the step."""

    clip: float
    noise_multiplier: float


@dataclass(frozen=True)
class OneStep(Mechanism):
    """Take one noisy gradient step from zero.

    Examples
    --------
    >>> from tacit.erm import OneStep
    >>> OneStep().name
    'one_step'
    """

    name = "one_step"
    title = "One step"
    is_candidate = False
    suits = (("a first look at a direction", "one release"),)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """Calibrate one Gaussian release."""
        if budget.is_pure:
            raise CannotSolve("one step adds Gaussian noise, which needs delta > 0; set delta.")
        facts = problem.facts(budget.relation)

        def event(multiplier: float) -> Event:
            return GaussianNoise(multiplier).event(facts)

        multiplier = {planned} * least_noise(event, budget)
        clip = problem.objective.lipschitz
        return Plan(
            mechanism=self,
            problem=problem,
            budget=budget,
            event=event(multiplier),
            excess_risk=problem.risk_of_noise(problem.dimension * (clip * multiplier) ** 2, 0.0)
            + clip * problem.typical_norm,  # one step may leave everything to be learned
            reason="one step",
            settings=StepSettings(clip, multiplier).shown(),
        )

    def solve(self, plan: Plan, session: Session) -> Solved:
        """Ask for the gradient at zero, and step against it."""
        settings, problem = StepSettings.of(plan), plan.problem
        start = np.zeros(problem.shape)
        gradient = Gradient(problem.objective, settings.clip, problem.n_records, start)
        query = NoisySum(gradient, GaussianNoise({asked} * settings.noise_multiplier))
        return Solved(-np.asarray(session.ask(query, "weights")) / problem.n_records)
'''
LINE = "from tacit.erm.mechanisms.one_step import OneStep as OneStep"
BEFORE = "from tacit.erm.mechanisms.noisy_sgd import"
PAGE = "# One step\n\n`tacit.erm.OneStep` takes one noisy gradient step.\n"
PROOF = "# One step: proof\n\n`tacit.erm.OneStep` releases one clipped sum with Gaussian noise.\n"
TOUCHED = {
    "src/tacit/erm/mechanisms/one_step.py",
    "src/tacit/erm/mechanisms/__init__.py",
    "docs/mechanisms/one_step.md",
    "docs/proofs/one_step.md",
}
# Tests of everything that is in the registry; of replays and ledgers, those of the new mechanism.
CONFORMANCE = [
    "tests/erm/test_plan.py",
    "tests/erm/test_minimization.py",
    "tests/erm/test_nobody_asks.py",
    "tests/report/test_wording_mechanisms.py",
    "tests/saving/test_codec_parts.py",
    "tests/test_docs.py::test_the_list_of_pages_names_every_page",
    "tests/test_registry_pages.py",
    "tests/test_site.py::test_nav_lists_every_page_once",
    "tests/test_site.py::test_reference_has_every_public_name",
]
REPLAYS = ["tests/test_replay_everything.py", "-k", "one_step and not kernel or every_mechanism"]

pytestmark = pytest.mark.slow


def added(folder: Path, planned: float = 1.0, asked: float = 1.0) -> Copy:
    copy = Copy(folder)
    text = MECHANISM.replace("{planned}", str(planned)).replace("{asked}", str(asked))
    copy.add_file("src/tacit/erm/mechanisms/one_step.py", text)
    copy.add_line("src/tacit/erm/mechanisms/__init__.py", LINE, BEFORE)
    copy.add_file("docs/mechanisms/one_step.md", PAGE)
    copy.add_file("docs/proofs/one_step.md", PROOF)
    done = copy.run("tools/registry_pages.py")
    assert done.returncode == 0, done.stderr
    return copy


def test_a_file_a_line_a_proof_and_a_page_are_enough(tmp_path: Path) -> None:
    copy = added(tmp_path)
    assert copy.touched == TOUCHED
    done = copy.test(*CONFORMANCE)
    assert done.returncode == 0, done.stdout[-3000:]
    done = copy.test(*REPLAYS)
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 30, done.stdout[-300:]
    written = (tmp_path / "docs" / "which_mechanism.md").read_text(encoding="utf-8")
    assert "| a first look at a direction | [one step](mechanisms/one_step.md) |" in written
    named = copy.run("-c", "from tacit.mechanism_names import *; print(MECHANISM_NAMES)")
    assert "one_step" in named.stdout


def test_noise_below_its_plan_is_caught(tmp_path: Path) -> None:
    failed = failures(added(tmp_path, asked=0.9).test(*REPLAYS))
    assert failed
    assert all("one_step" in line for line in failed), failed


def test_a_plan_above_its_budget_is_caught(tmp_path: Path) -> None:
    failed = failures(added(tmp_path, planned=0.9).test("tests/erm/test_plan.py"))
    assert failed
    assert all("budget[one_step]" in line for line in failed), failed
