"""What the package promises about itself, and that the quality gate fails when it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def pinned() -> set[str]:
    return {
        name.lower().replace("_", "-") for name in re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE)
    }


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w.-]+", text) for text in requirements if isinstance(text, str))
    return {match[0].lower() for match in found if match}


def test_types_are_shipped() -> None:
    assert resources.files("dagsail").joinpath("py.typed").is_file()


def test_version_of_the_installed_package_is_the_one_in_pyproject() -> None:
    assert metadata.version("dagsail") == PROJECT["project"]["version"]


def test_console_script_starts_the_command_line() -> None:
    (script,) = metadata.entry_points(group="console_scripts", name="dagsail")
    assert callable(script.load())


def test_every_declared_dependency_is_locked() -> None:
    project = PROJECT["project"]
    declared = names(project["dependencies"] + project["optional-dependencies"]["recipes"])
    for group in PROJECT["dependency-groups"].values():
        declared |= names(group)
    assert declared <= pinned()


def test_lock_has_a_hash_for_each_pin_and_names_no_host() -> None:
    pins = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]
    assert [pin for pin in pins if "--hash=sha256:" not in pin] == []
    assert "://" not in LOCK


HALF_TESTED = """
def tested():
    return 1

def untested(x):
    y = x + 1
    y = y * 2
    return y
"""


def gate(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run one test of `sample.py` under the project's coverage settings."""
    (folder / "sample.py").write_text(source, encoding="utf-8")
    (folder / "test_sample.py").write_text(
        "import sample\n\ndef test_sample():\n    assert sample.tested() == 1\n", encoding="utf-8"
    )
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV_", "PYTEST_"))}
    environment |= {
        "COVERAGE_FILE": str(folder / ".coverage"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(folder),
    }
    settings = f"--cov-config={ROOT / 'pyproject.toml'}"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pytest_cov", "--cov=sample", settings],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_coverage_gate_is_ninety_percent() -> None:
    assert PROJECT["tool"]["coverage"]["report"]["fail_under"] == 90


def test_coverage_gate_fails_on_half_tested_code(tmp_path: Path) -> None:
    result = gate(tmp_path, HALF_TESTED)
    assert "1 passed" in result.stdout
    assert result.returncode != 0, result.stdout
    assert "Required test coverage of 90.0% not reached" in result.stdout + result.stderr


@pytest.mark.parametrize(
    "compiled",
    [
        "@kernel\ndef untested(x):",
        "@inlined\ndef untested(x):",
        "def decide(snapshot: Snapshot, memory: Memory, limit: int) -> int:",
    ],
)
def test_coverage_gate_leaves_out_compiled_functions(tmp_path: Path, compiled: str) -> None:
    head = "def kernel(f):\n    return f\n\ninlined = kernel(kernel)\nSnapshot = Memory = int\n"
    result = gate(tmp_path, head + HALF_TESTED.replace("def untested(x):", compiled))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "TOTAL" in result.stdout
