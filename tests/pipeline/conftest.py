"""The arm on which models are selected."""

from __future__ import annotations

import dataclasses

import pytest

import dynident as di


@pytest.fixture(scope="module")
def robot():
    """Three joints: upright, and two that carry weight."""
    whole = di.load_robot("puma560").lock(q4=0, q5=0, q6=0)
    return dataclasses.replace(whole, drive=dataclasses.replace(whole.drive, source="motor"))
