"""What a private search is worth where there is no good default: the bandwidth of a kernel.

Kernel ridge regression on four tables of uci_regression, eight bandwidths from 0.05 to 2 for rows
of norm 1; mean square over that of the mean, on records held out. "declared" is the bandwidth that
follows from public bounds, "unpaid" the best of the eight with the whole budget each. Results go to
results/bandwidths.md.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
from statistics import fmean  # noqa: E402
from typing import Any  # noqa: E402

from search import loss  # noqa: E402
from sklearn.base import clone  # noqa: E402
from uci_regression import load_uci_regression  # noqa: E402

from tacit.datasets import Dataset  # noqa: E402
from tacit.features import GaussianKernel  # noqa: E402
from tacit.kernel import KernelRidge  # noqa: E402
from tacit.tuning import LogUniform, Made, PrivateSearch  # noqa: E402
from tacit.tuning.space import candidates  # noqa: E402

TABLES = ("bike", "elevators", "kin40k", "pol")
EPSILONS, DELTA = (1.0, 8.0), 1e-6
REPEATS = 2
SPACE = {"kernel": Made(GaussianKernel, LogUniform(0.05, 2.0))}
N_CANDIDATES, MEAN_TRIES = 8, 8
METHODS = ("declared", "PrivateSearch", "unpaid")


def once(data: Dataset, epsilon: float) -> dict[str, float]:
    records = data.train_rows, data.train_labels
    own: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
    model = KernelRidge(label_range=(-1.0, 1.0), row_norm=1.0, n_frequencies=64)

    def judged(fitted: Any) -> float:
        return loss(fitted, data, "mean square")

    def fitted(**parameters: Any) -> Any:
        return clone(model).set_params(**own, **parameters).fit(*records)

    search = PrivateSearch(model, SPACE, MEAN_TRIES, n_iter=N_CANDIDATES, **own)
    return {
        "declared": judged(fitted()),
        "PrivateSearch": judged(search.fit(*records)),
        "unpaid": min(judged(fitted(**one)) for one in candidates(SPACE, N_CANDIDATES)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repeat of one table")
    quick = parser.parse_known_args()[0].quick
    run, cells = harness.Run(), []
    for table in TABLES[:1] if quick else TABLES:
        data = load_uci_regression(table)
        for epsilon in EPSILONS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = [once(data, epsilon) for _ in range(1 if quick else REPEATS)]
            means = [fmean(one[method] for one in found) for method in METHODS]
            cells.append((table, f"{epsilon:g}", *(f"{mean:.3f}" for mean in means)))
            print(cells[-1], flush=True)
    text = harness.markdown_table(("table", "epsilon", *METHODS), cells)
    folder = harness.results_folder(quick)
    (folder / "bandwidths.md").write_text(f"{__doc__}\n{text}\n\n{harness.machine(run)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
