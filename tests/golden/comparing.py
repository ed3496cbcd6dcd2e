"""Whether two sets of pins are the same: released numbers to the bit, plans to 1e-11.

Bits are compared where everything that rounds is the same: processor, NumPy, BLAS. Elsewhere
differences are compared with the largest number of their array, to 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg  # so that its BLAS is loaded
import sklearn
from threadpoolctl import threadpool_info

from tacit.cluster.dask_records import arithmetic

PLANS = 1e-11
ELSEWHERE = 1e-9


class Difference(NamedTuple):
    """Where two pins differ and by how much; infinitely where they are not both numbers."""

    where: str
    stored: Any
    found: Any
    relative: float

    def __str__(self) -> str:
        size = "" if math.isinf(self.relative) else f", by {self.relative:.3g} of its size"
        return f"{self.where}: stored {_short(self.stored)}, found {_short(self.found)}{size}"


def environment(area: str = "") -> dict[str, Any]:
    """Return what decides the last bits of a fit on this machine."""
    blas = sorted(
        f"{each['internal_api']} {each['version']} {each.get('architecture', '')}".strip()
        for each in threadpool_info()
        if each["user_api"] == "blas"
    )
    made = {
        "arithmetic": arithmetic(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": blas,
    }
    if area == "networks":
        import torch

        made["torch"] = f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()}"
    return made


class Allowed(NamedTuple):
    """How far released numbers, and those of plans, may be from what was stored, and why."""

    released: float
    plans: float
    why: str


HERE = Allowed(0.0, PLANS, "numbers round here as where they were stored")
# Where the start of a case's name has an entry, a difference in the last bit is a greater one in
# the result. Looked up where numbers round otherwise than where they were stored, only.
LOOSER: Mapping[str, Allowed] = {
    "networks/": Allowed(1e-5, PLANS, "networks have single precision, and steps amplify"),
    "protocols/images": Allowed(1e-5, PLANS, "images are scattered in single precision"),
    "searches/": Allowed(1e-4, 1e-4, "a try's budget is found by bisection, to 1e-6"),
}


def allowed(area: str, name: str, kept: Mapping[str, Any], here: Mapping[str, Any]) -> Allowed:
    """Return how far numbers may be: nil, and 1e-11 in plans, where all rounds alike."""
    if dict(kept) == dict(here):
        return HERE
    why = f"numbers were stored where they round otherwise: {dict(kept)}, here {dict(here)}"
    for start, looser in LOOSER.items():
        if f"{area}/{name}".startswith(start):
            return looser._replace(why=f"{looser.why}, and {why}")
    return Allowed(ELSEWHERE, PLANS, why)


def differences(
    stored: Mapping[str, Any],
    found: Mapping[str, Any],
    released: float = 0.0,
    plans: float = PLANS,
) -> list[Difference]:
    """Return where a case is not what was stored, by more than released numbers and plans may."""
    made: list[Difference] = []
    for part in sorted({*stored, *found}):
        if part not in stored or part not in found:
            made.append(Difference(part, stored.get(part), found.get(part), math.inf))
        else:
            most = released if part == "released" else plans
            made += [
                each for each in _walk(part, stored[part], found[part]) if not each.relative <= most
            ]
    return made


def _walk(where: str, stored: Any, found: Any) -> Iterator[Difference]:
    if isinstance(stored, dict) and isinstance(found, dict):
        for name in sorted({*stored, *found}):
            if name in stored and name in found:
                yield from _walk(f"{where}.{name}", stored[name], found[name])
            else:
                yield Difference(
                    f"{where}.{name}", stored.get(name), found.get(name, "nothing"), math.inf
                )
    elif isinstance(stored, list) and isinstance(found, list):
        yield from _of_lists(where, stored, found)
    elif not _same(stored, found):
        yield Difference(where, stored, found, _relative([stored], [found]))


def _of_lists(where: str, stored: list[Any], found: list[Any]) -> Iterator[Difference]:
    first, second = list(_leaves(stored)), list(_leaves(found))
    if _shape(stored) != _shape(found):
        yield Difference(where, stored, found, math.inf)
    elif all(map(_is_number, first)) and all(map(_is_number, second)):
        if not all(map(_same, first, second)):
            yield Difference(where, stored, found, _relative(first, second))
    else:
        for number, pair in enumerate(zip(stored, found, strict=True)):
            yield from _walk(f"{where}[{number}]", *pair)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _shape(value: Any) -> Any:
    return [_shape(each) for each in value] if isinstance(value, list) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(stored: Any, found: Any) -> bool:
    if _is_number(stored) and _is_number(found):
        return bool(stored == found) and math.copysign(1, stored) == math.copysign(1, found)
    return type(stored) is type(found) and bool(stored == found)


def _relative(stored: list[Any], found: list[Any]) -> float:
    """Return the largest change of numbers that are not the same, beside the largest of them.

    A small number among larger ones is often a difference of such, and rounds as they do.
    """
    if not all(map(_is_number, (*stored, *found))):
        return math.inf
    size = max(abs(each) for each in (*stored, *found))
    most = max(abs(a - b) for a, b in zip(stored, found, strict=True))
    return max(most / size if size else 0.0, math.ulp(0.0))  # zeros of two signs differ, too


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
