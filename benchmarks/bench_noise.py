"""How fast safe noise is, beside unsafe NumPy and OpenDP, in one run on one thread."""

from __future__ import annotations

import importlib.util
import os
import statistics
import time
from collections.abc import Callable

# Before NumPy is imported: one thread for everything.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

from tacit.noise import Grid, Norm  # noqa: E402
from tacit.noise.bounded import Bounded  # noqa: E402
from tacit.noise.gaussian import gaussian  # noqa: E402
from tacit.noise.laplace import laplace  # noqa: E402
from tacit.noise.selection.finite import select  # noqa: E402
from tacit.noise.selection.line import select_on_line  # noqa: E402
from tacit.noise.sphere import sphere  # noqa: E402
from tacit.privacy import Relation  # noqa: E402

N = 1_000_000
N_OPENDP = 20_000
REPEATS = 7


def rate(run: Callable[[], object], n: int) -> float:
    """Return millions of samples a second: the median of seven runs after one to warm up."""
    run()
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return n / statistics.median(seconds) / 1e6


def opendp_gaussian(n: int) -> Callable[[], object] | None:
    if importlib.util.find_spec("opendp") is None:
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    measurement = space >> dp.m.then_gaussian(scale=1.0)
    values = [0.0] * n
    return lambda: measurement(values)


def vector(n: int, norm: Norm) -> Bounded:
    return Bounded(np.zeros(n), 1.0, norm, Relation.ADD_REMOVE)


def main() -> None:
    numpy_generator = np.random.Generator(np.random.PCG64())
    l1, l2, linf = (vector(N, norm) for norm in (Norm.L1, Norm.L2, Norm.LINF))
    one = Bounded(0.0, 1.0, Norm.L2, Relation.ADD_REMOVE)
    knots = np.linspace(0.0, 1.0, N)
    rows: list[tuple[str, int, Callable[[], object]]] = [
        ("tacit gaussian", N, lambda: gaussian(l2, 1.0)),
        ("NumPy PCG64 standard_normal (unsafe)", N, lambda: numpy_generator.standard_normal(N)),
        ("tacit laplace", N, lambda: laplace(l1, 1.0)),
        ("NumPy PCG64 laplace (unsafe)", N, lambda: numpy_generator.laplace(size=N)),
        ("tacit sphere", N, lambda: sphere(l2, 1.0)),
        ("tacit select", N, lambda: select(linf, 1.0)),
        ("tacit select_on_line", N, lambda: select_on_line(knots, linf, Grid(0.0, 1.0), 1.0)),
        ("tacit gaussian, one number", 1, lambda: gaussian(one, 1.0)),
    ]
    opendp = opendp_gaussian(N_OPENDP)
    if opendp is not None:
        rows.insert(2, ("OpenDP gaussian", N_OPENDP, opendp))
    print(f"{'noise':40s} {'coordinates':>12s} {'million/s':>10s}")
    rates = {}
    for name, n, run in rows:
        rates[name] = rate(run, n)
        print(f"{name:40s} {n:12,d} {rates[name]:10.4f}")
    if opendp is None:
        print("opendp not installed")
    ours = rates["tacit gaussian"]
    print(f"tacit / NumPy  = {ours / rates['NumPy PCG64 standard_normal (unsafe)']:.2f}")
    if opendp is not None:
        print(f"tacit / OpenDP = {ours / rates['OpenDP gaussian']:.0f}")


if __name__ == "__main__":
    main()
