"""How accurate tacit's defaults are on real data, beside diffprivlib, in one run.

Every row of the table: features from a public schema, a fixed split, defaults, no tuning, secure
noise without a seed. Results go to results/accuracy.csv, accuracy.md and accuracy.png.
"""

from __future__ import annotations

import harness

harness.pin_threads(1)  # two would wait for each other whenever the machine is shared

import argparse  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import lru_cache  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import fmean, median  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import sklearn.linear_model  # noqa: E402
from synthetic import LABEL_RANGE, make_linear_regression  # noqa: E402

from tacit.datasets import Dataset, load_adult, load_kddcup99, load_mnist  # noqa: E402
from tacit.linear_model import LinearRegression, LogisticRegression  # noqa: E402

REPEATS = 20
SLOW_REPEATS = 10
SLOW_SECONDS = 20.0
PEER_REPEATS = {"adult": 5, "kddcup99": 3, "mnist": 1, "linear": 5}
N_FEATURES = 50  # of the linear regression
CUBE_NORM = math.sqrt(N_FEATURES)  # no row of [-1, 1]^50 is longer
TYPICAL_NORM = math.sqrt(N_FEATURES / 3)  # the root mean square length of a uniform row


@dataclass(frozen=True)
class Case:
    """One row of the table: data, a budget, a target."""

    data: str
    epsilon: float
    delta: float
    delta_text: str
    target: float | None = None  # least mean score
    gap: float | None = None  # or the greatest distance below least squares
    to_beat: str = ""

    @property
    def title(self) -> str:
        names = {"adult": "Adult", "kddcup99": "KDDCup99", "mnist": "MNIST", "linear": "linear"}
        return f"{names[self.data]}, epsilon {self.epsilon:g}, delta {self.delta_text}"


@dataclass(frozen=True)
class Variant:
    """One way a user might call tacit on a data set."""

    name: str
    make: Callable[[Case], Any]


N = {"adult": 32_561, "kddcup99": 395_216, "mnist": 60_000, "linear": 100_000}
CASES = [
    Case("adult", 0.1, 1e-5, "1e-5", 0.835, None, "0.818 noisy GD, 0.768 diffprivlib"),
    Case("adult", 0.1, N["adult"] ** -2, "1/n^2", 0.826, None, "0.809 DP-GD, 0.793 AMP"),
    Case("adult", 1.0, 1e-5, "1e-5", 0.845, None, "0.835 Opacus, 0.841 noisy GD"),
    Case("adult", 1.0, N["adult"] ** -2, "1/n^2"),
    Case("adult", 1.0, 0.0, "0", 0.838, None, "0.781 diffprivlib, 0.819 best of three"),
    Case("kddcup99", 0.1, N["kddcup99"] ** -2, "1/n^2", 0.988, None, "0.987"),
    Case("kddcup99", 0.1, 1e-5, "1e-5"),
    Case("linear", 0.1, 1e-5, "1e-5", None, 0.005, "-9e17 diffprivlib, 0.71 plain statistics"),
    Case("linear", 0.1, N["linear"] ** -2, "1/n^2"),
    Case("linear", 1.0, 1e-5, "1e-5", None, 0.001, "-7e7 diffprivlib, 0.953 plain statistics"),
    Case("mnist", 1.0, N["mnist"] ** -2, "1/n^2", 0.895, None, "0.886 DP-GD, 0.217 diffprivlib"),
]
LOADERS: dict[str, Callable[[], Dataset]] = {
    "adult": load_adult,
    "kddcup99": load_kddcup99,
    "mnist": load_mnist,
    "linear": make_linear_regression,
}


def classifier(classes: list[Any], n_records: int | None = None) -> Callable[[Case], Any]:
    return lambda case: LogisticRegression(
        epsilon=case.epsilon, delta=case.delta, row_norm=1.0, classes=classes, n_records=n_records
    )


def regression(row_norm: float) -> Callable[[Case], Any]:
    return lambda case: LinearRegression(
        epsilon=case.epsilon, delta=case.delta, row_norm=row_norm, label_range=LABEL_RANGE
    )


VARIANTS = {
    "adult": [Variant("tacit", classifier([False, True]))],
    "kddcup99": [Variant("tacit", classifier([False, True]))],
    "mnist": [
        Variant("tacit, n public", classifier(list(range(10)), N["mnist"])),
        Variant("tacit, n private", classifier(list(range(10)))),
    ],
    "linear": [
        Variant("tacit, row_norm sqrt(50)", regression(CUBE_NORM)),
        Variant("tacit, row_norm sqrt(50/3)", regression(TYPICAL_NORM)),
    ],
}


def peer_jobs(data: str, epsilon: float) -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, model and parameters of each peer."""
    if data == "linear":
        bounds = {"bounds_X": [-1.0, 1.0], "bounds_y": list(LABEL_RANGE)}
        return [("diffprivlib", "linear", {"epsilon": epsilon, **bounds})]
    strengths = (1.0,) if data == "mnist" else (1.0, 0.01, 100.0)
    return [
        (f"diffprivlib, C={c:g}", "logistic", {"epsilon": epsilon, "data_norm": 1.0, "C": c})
        for c in strengths
    ]


@lru_cache(maxsize=1)
def load(name: str) -> Dataset:
    return LOADERS[name]()


def clipped(rows: Any) -> Any:
    """Scale rows down to norm 1, for those who do not do it themselves."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)


@lru_cache(maxsize=1)
def peer_file(name: str) -> Path:
    """Write what the peers read: the same rows, scaled to norm 1 for classification."""
    data = load(name)
    train, test = data.train_rows, data.test_rows
    if name != "linear":
        train, test = clipped(train), clipped(test)
    path = harness.SCRATCH / f"{name}.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(
        path,
        train_rows=train,
        train_labels=data.train_labels,
        test_rows=test,
        test_labels=data.test_labels,
    )
    return path


@lru_cache
def limits(name: str) -> tuple[float, float]:
    """Return the floor (a constant guess) and the non-private ceiling of scikit-learn."""
    data = load(name)
    if name == "linear":
        model = sklearn.linear_model.LinearRegression().fit(data.train_rows, data.train_labels)
        return 0.0, float(model.score(data.test_rows, data.test_labels))
    values, counts = np.unique(data.train_labels, return_counts=True)
    floor = float(np.mean(data.test_labels == values[counts.argmax()]))
    # C = 100 is near the unregularised optimum on rows of norm 1.
    most = 100 if name == "mnist" else 1000
    model = sklearn.linear_model.LogisticRegression(C=100.0, max_iter=most)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 100 iterations are enough for the accuracy on MNIST
        model.fit(clipped(data.train_rows), data.train_labels)
    return floor, float(model.score(clipped(data.test_rows), data.test_labels))


def measure(case: Case, variant: Variant, repeats: int) -> dict[str, Any]:
    """Fit and score again and again, each time with fresh noise."""
    data = load(case.data)
    scores: list[float] = []
    times: list[float] = []
    mechanism = ""
    while len(scores) < repeats:
        model = variant.make(case)
        start = time.perf_counter()
        model.fit(data.train_rows, data.train_labels)
        times.append(time.perf_counter() - start)
        scores.append(float(model.score(data.test_rows, data.test_labels)))
        mechanism = model.plan_.mechanism.name
        if times[0] > SLOW_SECONDS:
            repeats = min(repeats, SLOW_REPEATS)
    return {"mechanism": mechanism, **summary(scores, times)}


def summary(scores: list[float], times: list[float]) -> dict[str, Any]:
    return {
        "repeats": len(scores),
        "mean": fmean(scores),
        "sd": harness.spread(scores),
        "min": min(scores),
        "fit_seconds": median(times),
    }


def rows_of(case: Case, quick: bool, peers: bool) -> list[dict[str, Any]]:
    """Return one row for each way of calling tacit and one for each peer."""
    floor, ceiling = limits(case.data)
    target = ceiling - case.gap if case.gap is not None else case.target
    about = {"case": case.title, "epsilon": case.epsilon, "delta": case.delta}
    bounds = {"floor": floor, "ceiling": ceiling, "target": target, "to_beat": case.to_beat}
    rows = []
    for variant in VARIANTS[case.data]:
        row = measure(case, variant, 3 if quick else REPEATS)
        met = None if target is None else row["mean"] >= target
        rows.append({**about, "method": variant.name, **row, **bounds, "met": met})
        tell(rows[-1])
    for name, row in peer_rows(case.data, case.epsilon, quick) if peers else ():
        rows.append({**about, "delta": 0.0, "method": name, **row, **bounds, "met": None})
        tell(rows[-1])
    return rows


@lru_cache
def peer_rows(data: str, epsilon: float, quick: bool) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return what each peer reaches; measured once for all delta, which diffprivlib has not."""
    repeats = 1 if quick else PEER_REPEATS[data]
    rows = []
    for name, model, parameters in peer_jobs(data, epsilon):
        answer = harness.run_peer(peer_file(data), model, parameters, repeats)
        rows.append((name, {"mechanism": "pure", **summary(answer["scores"], answer["seconds"])}))
    return tuple(rows)


def tell(row: dict[str, Any]) -> None:
    print(
        f"{row['case']:42s} {row['method']:28s} {number(row['mean'])} sd {row['sd']:.2g} "
        f"x{row['repeats']} {row['fit_seconds']:.2f} s {verdict(row)}",
        flush=True,
    )


def number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.0e}"


def verdict(row: dict[str, Any]) -> str:
    return "" if row["met"] is None else ("yes" if row["met"] else "**no**")


def write(rows: list[dict[str, Any]], folder: Path, run: harness.Run) -> None:
    harness.write_csv(folder / "accuracy.csv", rows)
    header = "case|method|mean|sd|min|repeats|floor|ceiling|target|met|mechanism|fit s|to beat"
    body = [
        [
            row["case"],
            row["method"],
            number(row["mean"]),
            f"{row['sd']:.4f}" if row["sd"] < 100 else f"{row['sd']:.0e}",
            number(row["min"]),
            str(row["repeats"]),
            number(row["floor"]),
            number(row["ceiling"]),
            "" if row["target"] is None else number(row["target"]),
            verdict(row),
            row["mechanism"],
            f"{row['fit_seconds']:.2f}",
            row["to_beat"] if row["method"].startswith("tacit") else "",
        ]
        for row in rows
    ]
    text = f"""# Accuracy

{harness.machine(run)}

Defaults, no tuning, fresh secure noise in every repeat; features from public schemas
(`tacit.datasets`), rows clipped to norm 1 (linear regression: see the method). Score: accuracy on
the test records, or R2 for the linear regression. Floor: a constant guess. Ceiling: scikit-learn
without privacy (C = 100, or least squares). diffprivlib is pure epsilon-DP and gets the same rows,
at every C shown; it is not the same guarantee as a delta above 0. Where one fit took more than
{SLOW_SECONDS:.0f} s there are {SLOW_REPEATS} repeats. Rows without a target show the other delta.

"""
    table = harness.markdown_table(header.split("|"), body)
    picture = "\n![each method beside target, floor and ceiling](accuracy.png)\n"
    (folder / "accuracy.md").write_text(text + table + picture)


def draw(rows: list[dict[str, Any]], folder: Path) -> None:
    """One panel a case: a dot and two standard deviations a method; target, floor, ceiling."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cases = list(dict.fromkeys(row["case"] for row in rows))
    n_columns = min(4, len(cases))
    n_lines = math.ceil(len(cases) / n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(4.0 * n_columns, 3.6 * n_lines), squeeze=False
    )
    for axis in axes.flat[len(cases) :]:
        axis.set_visible(False)
    for axis, case in zip(axes.flat, cases, strict=False):
        draw_case(axis, case, [row for row in rows if row["case"] == case])
    figure.suptitle("Score on test records: mean and two standard deviations")
    figure.tight_layout()
    figure.savefig(folder / "accuracy.png", dpi=130)
    plt.close(figure)


def panel_limits(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Return what a panel shows: tacit, target and ceiling well apart, the floor if it fits."""
    floor, ceiling, target = (rows[0][key] for key in ("floor", "ceiling", "target"))
    lows = [row["mean"] - 2 * row["sd"] for row in rows if row["method"].startswith("tacit")]
    if target is not None:
        lows.append(target)
    depth = min(10.0 * (ceiling - min(lows)), 1.15 * (ceiling - floor))
    return ceiling - depth, ceiling + 0.08 * depth


def draw_case(axis: Any, case: str, rows: list[dict[str, Any]]) -> None:
    floor, ceiling, target = (rows[0][key] for key in ("floor", "ceiling", "target"))
    bottom, top = panel_limits(rows)
    for place, row in enumerate(rows):
        color = "tab:blue" if row["method"].startswith("tacit") else "tab:gray"
        if row["mean"] < bottom:
            axis.plot(place, bottom, "v", color=color, clip_on=False)
            label = f"{row['mean']:.3g}"
            axis.annotate(label, (place, bottom), (0, 8), textcoords="offset points", ha="center")
        else:
            axis.errorbar(place, row["mean"], 2 * row["sd"], fmt="o", color=color, capsize=4)
    lines = [(ceiling, "tab:green", "ceiling")]
    if floor > bottom:
        lines.append((floor, "tab:red", "floor"))
    if target is not None:
        lines.append((target, "black", "target"))
    for height, color, label in lines:
        axis.axhline(height, color=color, linestyle=":" if label != "target" else "--", lw=1)
        above = "bottom" if label != "target" else "top"
        axis.text(len(rows) - 0.5, height, label, color=color, ha="right", va=above, fontsize=8)
    axis.set_ylim(bottom, top)
    axis.set_xlim(-0.5, len(rows) - 0.5)
    labels = [row["method"].replace(", ", "\n").replace("row_norm ", "norm ") for row in rows]
    axis.set_xticks(range(len(rows)), labels, fontsize=7)
    below = "" if floor > bottom else f" (floor {floor:.2f}, below)"
    axis.set_title(case + below, fontsize=9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 repeats, peers 1, no MNIST")
    parser.add_argument("--only", help="cases whose title contains this")
    parser.add_argument("--no-peers", action="store_true", help="leave diffprivlib out")
    options = parser.parse_args()
    cases = [case for case in CASES if not (options.quick and case.data == "mnist")]
    if options.only:
        cases = [case for case in CASES if options.only.lower() in case.title.lower()]
    folder = harness.results_folder(options.quick or bool(options.only) or options.no_peers)
    run = harness.Run()
    rows: list[dict[str, Any]] = []
    for case in cases:
        rows += rows_of(case, options.quick, not options.no_peers)
        write(rows, folder, run)
    draw(rows, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
