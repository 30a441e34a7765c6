"""Fixtures of the motion tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def without_compiling(monkeypatch):
    """A few samples are not worth a compiler."""
    monkeypatch.setenv("DYNIDENT_BACKEND", "numpy")
