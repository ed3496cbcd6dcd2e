"""Everything `make bench` measures, one part after the other, each in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ["bench_noise.py"]


def main() -> int:
    failed = 0
    for part in PARTS:
        print(f"== {part}", flush=True)
        failed += subprocess.run([sys.executable, str(HERE / part)], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
