"""Fixtures that every test folder shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real workloads; tests that need it are skipped where it is not set."""
    folder = os.environ.get("DAGSAIL_DATA")
    if not folder:
        pytest.skip("DAGSAIL_DATA is not set: real workload files are not at hand")
    return Path(folder)
