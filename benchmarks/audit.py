"""What audits find: of correct code, of code with less noise, and of diffprivlib.

    python benchmarks/audit.py [PEER_PYTHON]

Results go to results/audit.md. Noise is cut where an objective is tilted; fits are 4,000 in all
unless said. PEER_PYTHON is an interpreter with diffprivlib 0.6.6 and what tacit needs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import harness
import numpy as np

from tacit.audit import audit, audit_fits
from tacit.linear_model import LogisticRegression
from tacit.noise.perturbed_minimizer import GaussianPerturbation
from tacit.privacy import Budget
from tacit.privacy.accounting.gaussian_profile import gaussian_mu

Row = tuple[str, str, str]
DELTA = 1e-5


def model(epsilon: float) -> LogisticRegression:
    known: dict[str, Any] = {"row_norm": 1.0, "classes": [0, 1], "fit_intercept": False}
    return LogisticRegression(epsilon, DELTA, regularization=1.0, **known)


@contextmanager
def less_noise(share: float) -> Iterator[None]:
    """Leave so much of the noise on an objective."""
    draw = GaussianPerturbation.draw
    GaussianPerturbation.draw = lambda self, source: share * draw(self, source)  # type: ignore
    try:
        yield
    finally:
        GaussianPerturbation.draw = draw  # type: ignore[method-assign]


def share_found(epsilon: float, least: float) -> Row:
    """Return the median share of a claim that five audits of correct code find."""
    shares, seconds = [], []
    for _ in range(5):
        start = time.perf_counter()
        shares.append(audit(model(epsilon)).strongest.epsilon / epsilon)
        seconds.append(time.perf_counter() - start)
    each = ", ".join(f"{share:.2f}" for share in shares)
    found = f"{statistics.median(shares):.2f} (of {each}), {statistics.median(seconds):.0f} s each"
    return f"share found at epsilon {epsilon:g}, 5 audits", found, f"{least:g}, under 60 s"


def rejected(epsilon: float, share: float, fits: int, audits: int = 3) -> Row:
    """Return how many audits of code with less noise contradict it."""
    with less_noise(share):
        found = [audit(model(epsilon), fits=2 * fits) for _ in range(audits)]
    bounds = ", ".join(f"{one.strongest.epsilon:.2f}" for one in found)
    what = f"noise cut by {1 - share:.0%} at epsilon {epsilon:g}, {fits:,} fits a world"
    times = sum(bool(one.above_claim) for one in found)
    return what, f"contradicted {times} of {audits} times (at least {bounds})", "contradicted"


def false_alarms(audits: int = 200) -> Row:
    """Return how often audits of correct code contradict it."""
    noise = 1 / gaussian_mu(1.0, DELTA)

    def fit(values: list[float], rng: np.random.Generator) -> float:
        return sum(values) + noise * rng.standard_normal()

    claim = Budget(1.0, DELTA)
    alarms = sum(
        bool(audit_fits(fit, [], [1.0], claim, fits=600).above_claim) for _ in range(audits)
    )
    return f"false alarms in {audits} audits of a Gaussian sum", f"{alarms}", "at most 18"


def peer(python: str, fits: int = 16_000) -> Row:
    """Return what is found of diffprivlib."""
    script = str(harness.HERE / "audit_peer.py")
    environment = {**os.environ, "PYTHONPATH": str(harness.HERE.parent / "src")}
    done = subprocess.run(
        [python, script, str(fits)], env=environment, capture_output=True, check=True, text=True
    )
    said = json.loads(done.stdout)
    (finding,) = said["findings"]
    return f"{said['subject']}, {fits:,} fits", f"at least {finding['epsilon']:.3f}", "above 1"


def main(peer_python: str | None = None) -> None:
    """Measure, print, and write results/audit.md if all of it was measured."""
    run, rows = harness.Run(), list[Row]()
    work: list[Callable[[], Row]] = [
        false_alarms,
        lambda: share_found(1.0, 0.75),
        lambda: share_found(8.0, 0.9),
        lambda: rejected(1.0, 0.7, 2000),
        lambda: rejected(8.0, 0.95, 2800),
    ]
    if peer_python:
        work.append(lambda: peer(peer_python))
    for measure in work:
        rows.append(measure())
        print(rows[-1], flush=True)
    written(run, rows, partial=not peer_python)


def written(run: harness.Run, rows: list[Row], partial: bool) -> None:
    """Write what was measured."""
    about = (__doc__ or "").split("\n\n")
    said = harness.markdown_table(("what", "measured", "asked for"), rows)
    text = "\n\n".join(["# Audits", harness.machine(run), about[0], about[2].strip(), said])
    path = harness.results_folder(partial) / "audit.md"
    path.write_text(f"{text.rstrip()}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
