"""What README and docs say: every block marked as run is run, and the page of the help is current.

A block after `<!-- run -->` must succeed; after `<!-- run: exit code 2 -->` its last command must
end so. Blocks of one page share a folder, which holds `examples`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(
    r"<!-- run(?:: exit code (?P<code>\d))? -->\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL
)
TIMEOUT_S = 240


class Block(NamedTuple):
    """Something that a reader may paste."""

    language: str
    text: str
    exit_code: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(match["language"], match["text"], int(match["code"] or 0))
        for match in BLOCK.finditer(text)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the examples, and `dagsail` on the path."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    command = tmp_path / "bin" / "dagsail"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dagsail "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.name)
def test_blocks_of_a_page_run(page: Path, folder: Path) -> None:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page):
        runner = {"sh": ["sh", "-e"], "python": [sys.executable]}[block.language]
        result = subprocess.run(
            [*runner, "-c", block.text],
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert result.returncode == block.exit_code, f"{block.text}\n{result.stderr}"
        assert "Traceback" not in result.stderr
        assert result.stdout or block.exit_code


def test_readme_and_quick_start_have_blocks_to_run() -> None:
    assert len(blocks(ROOT / "README.md")) >= 4
    assert len(blocks(ROOT / "docs" / "quickstart.md")) >= 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_page_of_the_command_line_is_current() -> None:
    path = ROOT / "docs" / "generate_cli.py"
    spec = importlib.util.spec_from_file_location("generate_cli", path)
    assert spec is not None
    assert spec.loader is not None
    generate_cli = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate_cli)
    assert generate_cli.PAGE.read_text(encoding="utf-8") == generate_cli.page(), (
        "run: python docs/generate_cli.py"
    )
