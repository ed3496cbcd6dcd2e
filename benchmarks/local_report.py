"""The local study's figures and page, made from its tables."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from harness import markdown_table, results_folder

# Paul Tol's bright scheme: distinguishable without colour vision, and in print with the markers.
BLUE, RED, GREEN, GREY, CYAN, PURPLE = (
    "#4477AA",
    "#EE6677",
    "#228833",
    "#777777",
    "#66CCEE",
    "#AA3377",
)


DEFAULTS = ("default 1/sqrt(t)", "default 1/sqrt(T)", "default 1/(B sqrt(T))")


def read(path: Path) -> list[dict[str, str]]:
    import csv

    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if "problem" in row:  # a bar would end a table's cell
            row["problem"] = row["problem"].replace("|w*|", "‖w*‖")
    return rows


def number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "not finite"


def column_of(rows: list[dict[str, str]], keys: tuple[str, ...], column: str) -> dict[Any, float]:
    """Return a column by its case; infinite if any run was not finite."""
    return {tuple(row[key] for key in keys): float(row[column]) for row in rows}


def rates_section(folder: Path, plt: Any) -> str:
    rows = read(folder / "local_rates.csv")
    own = column_of(rows, ("problem", "epsilon", "learner", "n"), "excess")
    plain = column_of(rows, ("problem", "epsilon", "learner", "n"), "plain_excess")
    zero = column_of(rows, ("problem", "epsilon"), "zero")
    seeds = column_of(rows, ("problem", "epsilon"), "seeds")
    cases = list(dict.fromkeys((row["problem"], row["epsilon"]) for row in rows))
    last = str(max(int(row["n"]) for row in rows))
    rates = [
        name for name in dict.fromkeys(row["learner"] for row in rows) if name.startswith("rate")
    ]
    table = []
    for case in cases:
        best_own = min(own[(*case, rate, last)] for rate in rates)
        best_plain = min(plain[(*case, rate, last)] for rate in rates)
        best_rate = min(rates, key=lambda rate: own[(*case, rate, last)])
        banco, poster = own[(*case, "banco", last)], plain[(*case, "poster", last)]
        defaults = [own[(*case, name, last)] for name in DEFAULTS]
        table.append(
            [
                case[0],
                f"{float(case[1]):g}",
                f"{seeds[case]:g}",
                number(zero[case]),
                f"{number(best_own)} ({best_rate})",
                number(banco),
                f"{banco / best_own:.2f}",
                f"{banco / min(best_own, best_plain):.2f}",
                number(poster),
                f"{poster / best_plain:.2f}",
                *(number(x) for x in defaults),
            ]
        )
    _draw_rates(folder, plt, cases, rates, own, zero)
    header = [
        "problem",
        "epsilon",
        "seeds",
        "excess of 0",
        "best of 13 rates",
        "BANCO",
        "ratio",
        "ratio to the better of two averages",
        "poster's BANCO",
        "its ratio (plain averages)",
        *(name.replace("default", "rate") for name in DEFAULTS),
    ]
    return (
        f"## BANCO against 13 learning rates, T = {int(last):,}\n\n"
        "Mean excess test loss over the seeds. The best rate is chosen in hindsight, on the test "
        "loss itself, which no private run could do. BANCO and the rates use the same average "
        "(weights i^3); the poster's BANCO the plain one, compared with the rates' plain one.\n\n"
        + markdown_table(header, table)
        + "\n![Excess loss against the number of people](local_rates.png)\n\n"
    )


def _draw_rates(
    folder: Path, plt: Any, cases: list[Any], rates: list[str], own: dict[Any, float], zero: Any
) -> None:
    columns = min(4, len(cases))
    height = math.ceil(len(cases) / columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(4 * columns, 3.2 * height), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(cases) :]:
        axis.set_visible(False)
    for axis, case in zip(axes.flat, cases, strict=False):
        times = sorted({int(key[3]) for key in own if key[:2] == case})

        def series(name: str, case: Any = case, times: Any = times) -> list[float]:
            return [own[(*case, name, str(t))] for t in times]

        for i, rate in enumerate(rates):
            axis.plot(times, series(rate), color="#BBBBBB", lw=0.8, label=None if i else "13 rates")
        envelope = np.min([series(rate) for rate in rates], axis=0)
        axis.plot(times, envelope, color=GREY, lw=2, ls="--", label="best rate in hindsight")
        axis.plot(times, series("default 1/sqrt(t)"), color=RED, lw=1.2, label="rate 1/sqrt(t)")
        axis.plot(times, series("poster"), color=CYAN, lw=1.5, label="poster's BANCO")
        axis.plot(times, series("banco"), color=BLUE, lw=2.2, label="BANCO")
        axis.axhline(zero[case], color="black", lw=0.7, ls=":")
        axis.set(xscale="log", yscale="log", xlabel="people", ylabel="excess loss")
        low = float(np.nanmin([envelope.min(), min(series("banco"))]))
        axis.set_ylim(max(low / 2, 1e-6), 4 * zero[case])
        axis.set_title(f"{case[0]}, epsilon {float(case[1]):g}", fontsize=9)
    axes.flat[0].legend(fontsize=7)
    figure.savefig(folder / "local_rates.png", dpi=110)
    plt.close(figure)


def sanitizers_section(folder: Path, plt: Any) -> str:
    rows = read(folder / "local_sanitizers.csv")
    own = column_of(rows, ("sanitizer", "learner", "n"), "excess")
    plain = column_of(rows, ("sanitizer", "learner", "n"), "plain_excess")
    last = str(max(int(row["n"]) for row in rows))
    names = list(dict.fromkeys(row["sanitizer"] for row in rows))
    auto = own["PrivUnit (auto)", "banco", last]
    table = [
        [
            name,
            number(own[name, "banco", last]),
            f"{own[name, 'banco', last] / auto:.2f}",
            number(plain[name, "poster", last]),
        ]
        for name in names
    ]
    figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
    times = sorted({int(row["n"]) for row in rows})
    for name, colour in zip(names, [RED, PURPLE, GREEN, GREEN, CYAN, BLUE, GREY], strict=False):
        dashed = "--" if "Hoeffding" in name or "18" in name else "-"
        values = [own[name, "banco", str(t)] for t in times]
        axis.plot(times, values, color=colour, ls=dashed, label=name)
    axis.set(xscale="log", yscale="log", xlabel="people", ylabel="excess loss of BANCO")
    axis.legend(fontsize=7)
    figure.savefig(folder / "local_sanitizers.png", dpi=110)
    plt.close(figure)
    first = rows[0]
    return (
        f"## What the sanitizer is worth: absolute loss, d = {first['d']}, epsilon = "
        f"{float(first['epsilon']):g}, |w*| = 1, T = {int(last):,}\n\n"
        + markdown_table(["sanitizer", "BANCO", "over auto", "poster's BANCO"], table)
        + "\n![Excess loss by sanitizer](local_sanitizers.png)\n\n"
    )


def scaling_section(folder: Path, plt: Any) -> str:
    rows = read(folder / "local_scaling.csv")
    keys = ("d", "epsilon", "learner", "n")
    plain = column_of(rows, keys, "plain_excess")
    own = column_of(rows, keys, "excess")
    rms = column_of(rows, ("d", "epsilon"), "rms_norm")
    last = max(int(row["n"]) for row in rows)
    table = []
    for d, epsilon in sorted(rms, key=lambda key: (float(key[1]), int(key[0]))):
        unit = rms[d, epsilon] / math.sqrt(last)
        times = sorted({int(key[3]) for key in own if key[:2] == (d, epsilon)})
        early = times[-3]
        slope = math.log(
            own[d, epsilon, "banco", str(last)] / own[d, epsilon, "banco", str(early)]
        ) / math.log(last / early)
        table.append(
            [
                d,
                f"{float(epsilon):g}",
                number(rms[d, epsilon]),
                number(own[d, epsilon, "banco", str(last)]),
                f"{plain[d, epsilon, 'banco', str(last)] / unit:.3f}",
                f"{plain[d, epsilon, 'poster', str(last)] / unit:.3f}",
                f"{slope:.2f}",
            ]
        )
    figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for (d, epsilon), size in rms.items():
        times = sorted({int(key[3]) for key in own if key[:2] == (d, epsilon)})
        axis.plot(
            [math.sqrt(t) / size for t in times],
            [own[d, epsilon, "banco", str(t)] for t in times],
            marker="o",
            ms=3,
            lw=1,
            label=f"d={d}, epsilon={float(epsilon):g}",
        )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="sqrt(T) / root-mean-square norm of a report",
        ylabel="excess loss of BANCO",
    )
    axis.legend(fontsize=6)
    figure.savefig(folder / "local_scaling.png", dpi=110)
    plt.close(figure)
    header = [
        "d",
        "epsilon",
        "rms norm B",
        "excess",
        "plain excess x sqrt(T) / B",
        "poster's, the same",
        "slope in T (last decade)",
    ]
    return (
        "## Scaling in d, epsilon and T: absolute loss, |w*| = 1\n\n"
        "The theorem bounds the excess of the plain average by a constant times B / sqrt(T), with "
        "B the root-mean-square norm of a report (docs/proofs/banco.md). The bound is for the "
        "worst loss: the better problem behind these figures lets the excess fall faster.\n\n"
        + markdown_table(header, table)
        + "\n![Excess loss against the theorem's scale](local_scaling.png)\n\n"
    )


def endless_section(folder: Path, plt: Any) -> str:  # noqa: ARG001
    rows = read(folder / "local_endless.csv")
    table = [
        [
            r["problem"],
            f"{float(r['epsilon']):g}",
            r["learner"],
            f"{int(r['n']):,}",
            r["finite"],
            number(float(r["excess"])),
        ]
        for r in rows
    ]
    header = ["problem", "epsilon", "learner", "people", "always finite", "excess"]
    return "## Ten million people\n\n" + markdown_table(header, table) + "\n"


SECTIONS = {
    "rates": rates_section,
    "sanitizers": sanitizers_section,
    "scaling": scaling_section,
    "endless": endless_section,
}


def write_report(folder: Path, where: str) -> None:
    """Write local.md and its figures from whichever tables are there."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = [
        section(folder, plt)
        for name, section in SECTIONS.items()
        if (folder / f"local_{name}.csv").exists()
    ]
    text = f"# Local privacy: BANCO and gradient descent\n\n{where}\n\n" + "".join(parts)
    (folder / "local.md").write_text(text)


if __name__ == "__main__":
    write_report(results_folder("--quick" in sys.argv), "Made anew from the tables.")
