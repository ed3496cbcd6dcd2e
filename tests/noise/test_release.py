import subprocess
import sys

import tacit.noise


def test_the_public_names_exist():
    for name in tacit.noise.__all__:
        assert hasattr(tacit.noise, name), name
    assert tacit.noise.__all__ == sorted(tacit.noise.__all__)


def test_importing_noise_loads_nothing_heavy():
    code = (
        "import sys, tacit.noise; "
        "print([m for m in ('scipy.stats', 'mpmath', 'randomgen', 'pandas') "
        "if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
