"""The import contracts hold, and each of them fails when it is broken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = "Rooms know only the rooms below them"


def lint_imports(project: Path) -> tuple[int, str]:
    """Exit status and output of import-linter on a project folder."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--no-logo"],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(project / "src"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """The rooms of Dagsail without their contents, under the real contracts."""
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for path in sorted((ROOT / "src").rglob("*.py")):
        module = tmp_path / path.relative_to(ROOT)
        module.parent.mkdir(parents=True, exist_ok=True)
        module.touch()
    return tmp_path


def test_contracts_hold() -> None:
    status, output = lint_imports(ROOT)
    assert status == 0, output


def test_skeleton_keeps_all_contracts(skeleton: Path) -> None:
    status, output = lint_imports(skeleton)
    assert status == 0, output


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("domain/bad.py", "dagsail.scheduling", LAYERS),
        ("scheduling/bad.py", "dagsail.policies", LAYERS),
        ("clusters/simulated/bad.py", "dagsail.workloads", LAYERS),
        ("utils.py", "math", LAYERS),
        ("policies/heuristics/bad.py", "dagsail.policies.heuristics.fine", "Heuristics do not"),
        ("clusters/simulated/bad.py", "dagsail.clusters.recorded", "Cluster backends do not"),
        ("policies/bad.py", "torch", "No PyTorch outside of training"),
        ("clusters/bad.py", "kubernetes.client", "No PyTorch outside of training"),
        ("policies/heuristics/bad.py", "numba", "Numba is imported only where"),
        ("workloads/bad.py", "wfcommons", "WfCommons is imported by workloads.recipes alone"),
        ("clusters/bad.py", "altair", "Charts are drawn in evaluation alone"),
    ],
)
def test_bad_import_breaks_its_contract(
    skeleton: Path, module: str, imported: str, contract: str
) -> None:
    package = skeleton / "src/dagsail"
    (package / "policies/heuristics/fine.py").touch()
    (package / module).write_text(f"import {imported}\n", encoding="utf-8")
    status, output = lint_imports(skeleton)
    broken = [line for line in output.splitlines() if line.endswith("BROKEN")]
    assert status == 1, output
    assert [line.startswith(contract) for line in broken] == [True], output


def test_allowed_imports_keep_all_contracts(skeleton: Path) -> None:
    package = skeleton / "src/dagsail"
    (package / "workloads/recipes.py").write_text("import wfcommons\n", encoding="utf-8")
    (package / "evaluation/charts.py").write_text("import altair\n", encoding="utf-8")
    (package / "policies/shared.py").touch()
    (package / "policies/heuristics/fine.py").write_text(
        "import dagsail.policies.shared\nimport dagsail.kernels\n", encoding="utf-8"
    )
    status, output = lint_imports(skeleton)
    assert status == 0, output
