"""Everything `make bench` measures, one part after the other, each in its own process.

Arguments, such as --quick, are passed on to every part.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = [
    "bench_noise.py",
    "bench_constants.py",
    "accuracy.py",
    "regret.py",
    "weights.py",
    "inference.py",
    "people.py",
    "kernels.py",
    "scattering.py",
    "pipelines.py",
    "search.py",
    "bandwidths.py",
    "deep.py",
    "speed.py",
    "front_door.py",
    "bench_local.py",
    "local_study.py",
]


def main() -> int:
    failed = 0
    for part in PARTS:
        print(f"== {part}", flush=True)
        command = [sys.executable, str(HERE / part), *sys.argv[1:]]
        failed += subprocess.run(command, check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
