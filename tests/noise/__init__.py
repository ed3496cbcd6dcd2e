"""Tests of tacit.noise, file for file."""
