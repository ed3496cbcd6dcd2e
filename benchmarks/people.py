"""What it costs to protect a patient instead of a stay: Diabetes-130 by `patient_nbr`.

Areas under the curve on patients held back, defaults, secure noise. Fails unless the model that
protects people is within 0.02 of the one that protects records. Results go to results/people.md.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import fmean, stdev  # noqa: E402
from typing import Any  # noqa: E402

from diabetes130 import ROW_NORM, load_diabetes130  # noqa: E402
from sklearn.metrics import roc_auc_score  # noqa: E402

from tacit.erm.minimization import MechanismName  # noqa: E402
from tacit.linear_model import LogisticRegression  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "people.md"
EPSILON, DELTA = 1.0, 1e-6
GAP = 0.02
MECHANISMS: tuple[MechanismName, ...] = ("auto", "noisy_gradient", "output_perturbation")
REPEATS = {"auto": 10}
FEW = 3


def aucs(data: Any, mechanism: MechanismName, unit: Any, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        model = LogisticRegression(EPSILON, DELTA, row_norm=ROW_NORM, mechanism=mechanism)
        model.fit(data.train_rows, data.train_labels, unit=unit)
        scores = model.decision_function(data.test_rows)
        found.append(float(roc_auc_score(data.test_labels, scores)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few repeats")
    quick = parser.parse_args().quick
    data = load_diabetes130()
    lines = [
        f"# Diabetes-130 by patient: epsilon {EPSILON:g}, delta {DELTA:g}",
        "",
        "Area under the curve, mean and standard deviation.",
        "",
        "| mechanism | one stay is protected | one patient is protected | lost |",
        "|---|---|---|---|",
    ]
    lost = {}
    for mechanism in MECHANISMS:
        repeats = FEW if quick else REPEATS.get(mechanism, FEW)
        record, person = (aucs(data, mechanism, u, repeats) for u in (None, data.train_unit))
        lost[mechanism] = fmean(record) - fmean(person)
        cells = [f"{fmean(one):.4f} ± {stdev(one):.4f}" for one in (record, person)]
        lines.append(f"| {mechanism} | {cells[0]} | {cells[1]} | {lost[mechanism]:.4f} |")
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")
    if lost["auto"] > GAP:
        print(f"the default lost more than {GAP} by protecting people")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
