"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes is a matter of the machine and its neighbours.
settings.register_profile("tacit", deadline=None)
settings.load_profile("tacit")
