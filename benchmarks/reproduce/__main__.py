"""``python -m reproduce [--quick] [--draw] [NAME ...]``, with benchmarks/ on the path."""

from __future__ import annotations

import harness

harness.pin_threads(1)

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402

from rich.console import Console  # noqa: E402

from reproduce import gallery  # noqa: E402
from reproduce.drawing import save  # noqa: E402
from reproduce.figure import Figure, NotReproduced, Skipped  # noqa: E402
from reproduce.gallery import FIGURES as ALL  # noqa: E402
from reproduce.running import FIGURES, SCRATCH, keep, kept, measure  # noqa: E402


def one(figure: Figure, arguments: argparse.Namespace, commit: str, console: Console) -> str:
    """Make one figure; return a word on how it went."""
    folder = SCRATCH / "quick" if arguments.quick else FIGURES
    start = time.perf_counter()
    if not arguments.draw:
        try:
            cells = measure(figure, arguments.quick, console)
        except Skipped as reason:
            console.print(f"{figure.name}: skipped. {reason}", highlight=False)
            return "skipped"
        keep(figure, cells, folder, time.strftime("%Y-%m-%d"), commit)
    rows = kept(figure, folder)["rows"]
    try:
        figure.check(rows)
    except NotReproduced as error:
        console.print(f"{figure.name}: NOT REPRODUCED: {error}", highlight=False, style="red")
        return "not reproduced"
    save(figure.draw(rows), folder / f"{figure.name}.png")
    console.print(f"{figure.name}: as it should be ({time.perf_counter() - start:.0f} s)")
    return "reproduced"


def main() -> int:
    """Run the figures that are named, or all."""
    parser = argparse.ArgumentParser(prog="reproduce", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *(f.name for f in ALL)], default=[])
    parser.add_argument("--quick", action="store_true", help="smaller grids, to .bench/")
    parser.add_argument("--draw", action="store_true", help="draw again what was measured")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # that an epsilon is large; that a solver stopped early
    commit, console = harness.commit(), Console()
    chosen = [f for f in ALL if not arguments.names or f.name in arguments.names]
    went = [one(figure, arguments, commit, console) for figure in chosen]
    if not arguments.quick:
        gallery.write()
    console.print(", ".join(f"{went.count(word)} {word}" for word in dict.fromkeys(went)))
    return 1 if "not reproduced" in went else 0


if __name__ == "__main__":
    sys.exit(main())
