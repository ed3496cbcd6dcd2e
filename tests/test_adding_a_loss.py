"""What CONTRIBUTING says of adding a loss, done by script: a file, a line, and it is audited."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.added_by_script import Copy, failures

LOSS = '''
"""The logarithm of the hyperbolic cosine of the residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.erm.losses.base import Array
from tacit.erm.losses.base import Loss


@dataclass(frozen=True)
class HyperbolicLoss(Loss):
    """log cosh(z - y): d1 = tanh(z - y), d2 = 1 - tanh(z - y)^2.

    Examples
    --------
    >>> from tacit.erm.losses import HyperbolicLoss
    >>> HyperbolicLoss().lipschitz
    1.0
    """

    key = "hyperbolic"
    tried = (((), (-3.0, 0.0, 0.5, 2.0)),)
    lipschitz = 1.0
    smoothness = {smoothness}

    def value(self, score: Array, label: Array) -> Array:
        """Return |r| + log(1 + exp(-2 |r|)) - log 2."""
        size = np.abs(score - label)
        return size + np.log1p(np.exp(-2 * size)) - np.log(2.0)

    def d1(self, score: Array, label: Array) -> Array:
        """Return tanh(r)."""
        return np.tanh(score - label)

    def d2(self, score: Array, label: Array) -> Array:
        """Return 1 - tanh(r)^2."""
        return 1.0 - np.tanh(score - label) ** 2
'''
LINE = "from tacit.erm.losses.hyperbolic import HyperbolicLoss as HyperbolicLoss"
FIRST = "from tacit.erm.losses.logistic import"
AUDITS = [
    "tests/erm/test_losses.py",
    "tests/saving/test_codec_parts.py",
    "tests/test_everything_is_checked.py",
]

pytestmark = pytest.mark.slow


def audited(folder: Path, smoothness: float) -> subprocess.CompletedProcess[str]:
    """Write the file and the line into a copy of tacit, and run the conformance tests on it."""
    copy = Copy(folder)
    copy.add_file("src/tacit/erm/losses/hyperbolic.py", LOSS.format(smoothness=smoothness))
    copy.add_line("src/tacit/erm/losses/__init__.py", LINE, FIRST)
    return copy.test(*AUDITS)


def test_one_file_and_one_line_are_enough(tmp_path: Path) -> None:
    done = audited(tmp_path, smoothness=1.0)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("smoothness", [0.9, 1.1])
def test_a_wrong_constant_is_noticed(tmp_path: Path, smoothness: float) -> None:
    done = audited(tmp_path, smoothness)
    assert done.returncode == 1
    failed = failures(done)
    assert failed
    assert all("HyperbolicLoss" in line for line in failed), failed
