"""One look for all figures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.figure import Rows

# Okabe and Ito: apart for colour-blind eyes, and in grey.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#777777",
)
STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "legend.framealpha": 0.9,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "savefig.facecolor": "white",
}


def plotting() -> Any:
    """Return pyplot, for files and not for a screen."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(STYLE)
    import matplotlib.pyplot as plt

    return plt


def panels(columns: int, rows: int = 1, **told: Any) -> tuple[Any, Any]:
    """Return a figure and its axes."""
    size = told.pop("size", (3.7 * columns, 3.0 * rows))
    figure, axes = plotting().subplots(rows, columns, figsize=size, layout="constrained", **told)
    return figure, axes


def ranged(axis: Any, rows: Rows, x: str, value: str = "values", **told: Any) -> None:
    """Draw the means against x, and a shade from the least to the greatest repeat."""
    rows = sorted(rows, key=lambda row: float(row[x]))
    at = [row[x] for row in rows]
    told.setdefault("marker", "o")
    (line,) = axis.plot(at, [float(np.mean(row[value])) for row in rows], **told)
    least, most = ([float(of(row[value])) for row in rows] for of in (min, max))
    axis.fill_between(at, least, most, color=line.get_color(), alpha=0.15, linewidth=0)


def log_ticks(axis: Any, values: Sequence[float]) -> None:
    """Make x logarithmic, with ticks at these values and nowhere else."""
    axis.set_xscale("log")
    axis.set_xticks(values, [f"{value:g}" for value in values])
    axis.minorticks_off()


def shared_legend(figure: Any, axis: Any, columns: int, labels: Sequence[str] = ()) -> None:
    """Draw one legend below all panels."""
    handles, found = axis.get_legend_handles_labels()
    figure.legend(handles, labels or found, loc="outside lower center", ncols=columns)


def save(figure: Any, path: Path) -> None:
    """Write a PNG of at most 128 colours, which is small and looks the same."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    with io.BytesIO() as drawn:
        figure.savefig(drawn, format="png", dpi=120)
        drawn.seek(0)
        with Image.open(drawn) as image:
            image.convert("RGB").quantize(128).save(path, optimize=True)
    plotting().close(figure)
