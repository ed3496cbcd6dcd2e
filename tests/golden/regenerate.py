"""Fit every case anew and store it: ``make golden``.

Prints which cases are new, which are gone, and which changed and by how much. ``--check`` stores
nothing; names of areas run these alone.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from typing import Any, NamedTuple

from tacit.noise import recording
from tests.golden import stored
from tests.golden.cases import areas, cases
from tests.golden.comparing import differences, environment
from tests.golden.pinning import by_itself, is_heard, noise_pins


class Made(NamedTuple):
    """What a case gave, how long it took, whether it drew keys, and why it failed, if it did."""

    pins: dict[str, Any]
    seconds: float
    drew_keys: bool
    failure: str = ""


def run(area: str, name: str) -> Made:
    """Run one case in a state of its own."""
    with by_itself(f"{area}/{name}") as asked:
        start = time.perf_counter()
        case = cases(area)[name]
        heard = is_heard(case)
        with recording() if heard else nullcontext() as tape:
            pins = dict(case())
        if heard and "refused" not in pins:
            pins["noise"] = noise_pins(tape)
        return Made(pins, time.perf_counter() - start, bool(asked))


def _run(both: tuple[str, str]) -> Made:
    try:
        return run(*both)
    except Exception:  # the other cases are stored all the same
        return Made({}, 0.0, False, traceback.format_exc())


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _store(area: str, made: dict[str, Made], check: bool) -> int:
    """Store an area's cases, say what changed, and return how many did."""
    kept, here = stored.read(area), environment(area)
    before = kept["cases"]
    if before and kept["environment"] != here:
        _say(f"{area}: stored where numbers round otherwise", f"  stored {kept['environment']}")
        _say(f"  here   {here}")
    written: dict[str, Any] = {}
    changed = 0
    for name, each in made.items():
        if each.failure:
            _say(f"failed   {area}/{name}", each.failure)
            changed += 1
            written |= {name: before[name]} if name in before else {}
            continue
        found = differences(before[name], each.pins) if name in before else []
        if name not in before:
            _say(f"new      {area}/{name}")
        elif found:
            most = max(difference.relative for difference in found)
            _say(f"changed  {area}/{name}, by {most:.3g} at most")
            _say(*(f"           {difference}" for difference in found))
        changed += name not in before or bool(found)
        written[name] = each.pins if name not in before or found else before[name]
    gone = sorted(set(before) - set(made))
    _say(*(f"gone     {area}/{name}" for name in gone))
    if not check:
        stored.write(area, here, written)
    return changed + len(gone)


def _say_costs(made: dict[tuple[str, str], Made]) -> None:
    total = sum(each.seconds for each in made.values())
    refused = sum("refused" in each.pins for each in made.values())
    keyed = sorted(f"{a}/{n}" for (a, n), each in made.items() if each.drew_keys)
    _say(f"{len(made)} cases, {refused} of them refusals, {total:.1f} s; slowest:")
    slowest = sorted(made.items(), key=lambda item: -item[1].seconds)[:8]
    _say(*(f"  {each.seconds:.2f} s  {area}/{name}" for (area, name), each in slowest))
    _say(f"{len(keyed)} drew keys besides their seed, or have none:", *(f"  {n}" for n in keyed))


def main(arguments: Iterable[str] | None = None) -> int:
    """Regenerate areas; return 1 where a case failed or, with --check, changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("areas", nargs="*", help="areas to run, all by default")
    parser.add_argument("--check", action="store_true", help="store nothing")
    parser.add_argument("--jobs", type=int, default=2, help="processes, 2 by default")
    parser.add_argument("--costs", action="store_true", help="say how long cases took")
    told = parser.parse_args(None if arguments is None else list(arguments))
    chosen = told.areas or areas()
    every = [(area, name) for area in chosen for name in cases(area)]
    with ProcessPoolExecutor(told.jobs, get_context("spawn")) as pool:
        made = dict(zip(every, pool.map(_run, every, chunksize=8), strict=True))
    changed = sum(
        _store(area, {name: made[area, name] for name in cases(area)}, told.check)
        for area in chosen
    )
    _say(f"{changed} of {len(every)} cases changed.")
    if told.costs:
        _say_costs(made)
    failed = any(each.failure for each in made.values())
    return int(failed or (told.check and changed > 0))


if __name__ == "__main__":
    sys.exit(main())
