"""Tests that need torch, and are skipped without it."""

import pytest

pytest.importorskip("torch")
