"""Fixtures that the command line's tests have."""

from tests.cli.conftest import schema as schema
