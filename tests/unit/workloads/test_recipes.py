from __future__ import annotations

import importlib.util
import json
import logging
import os
import random
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dagsail.domain.errors import InputError, UnknownNameError
from dagsail.workloads import recipes, wfformat
from dagsail.workloads.reading import Reading


@pytest.fixture
def wfcommons() -> None:
    if importlib.util.find_spec("wfcommons") is None:
        pytest.skip("wfcommons is not installed")


def test_a_missing_package_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'dagsail\[recipes\]'"):
        recipes.generate("montage", 100, 1)


@pytest.mark.usefixtures("wfcommons")
class TestWithWfCommons:
    def test_lists_the_installed_recipes(self) -> None:
        names = recipes.recipe_names()
        assert names == sorted(names)
        assert {"blast", "cycles", "epigenomics", "montage", "srasearch"} <= set(names)

    def test_names_are_listed_without_the_slow_import(self) -> None:
        script = (
            "import sys; from dagsail.workloads import recipes; recipes.recipe_names();"
            "print('scipy' in sys.modules or 'wfcommons' in sys.modules)"
        )
        assert _python(script, "0").stdout == b"False\n"

    def test_an_unknown_name_suggests_the_near_miss(self) -> None:
        with pytest.raises(
            UnknownNameError, match="unknown recipe 'montag'; did you mean 'montage'"
        ):
            recipes.generate("montag", 100, 1)

    def test_too_few_tasks_name_the_minimum(self) -> None:
        # the smallest recorded montage run has 58 tasks
        with pytest.raises(InputError, match="num_tasks is 57; allowed are 58 to 100000"):
            recipes.generate("montage", 57, 1)

    def test_absurd_numbers_are_refused(self) -> None:
        with pytest.raises(InputError, match="num_tasks is 1000000000"):
            recipes.generate("blast", 10**9, 1)
        for seed in (-1, 2**32):
            with pytest.raises(InputError, match="allowed are 0 to 4294967295"):
                recipes.generate("blast", 100, seed)

    @pytest.mark.parametrize("num_tasks", [58, 59, 100, 179])
    def test_montage_grows_to_any_size(self, num_tasks: int) -> None:
        reading = recipes.generate("montage", num_tasks, 3)
        (workflow,) = reading.workflows
        assert workflow.id == f"montage-{num_tasks}-3"
        assert workflow.family == "montage"
        assert 0.95 * num_tasks <= len(workflow.tasks) <= num_tasks
        assert len(workflow.dependencies) > len(workflow.tasks)
        assert {"mProject", "mDiffFit", "mAdd"} <= {task.kind for task in workflow.tasks}
        assert sum(edge.data_bytes for edge in workflow.dependencies) > 0

    def test_every_recipe_grows(self) -> None:
        for name in recipes.recipe_names():
            (workflow,) = recipes.generate(name, 150, 1).workflows
            assert 100 < len(workflow.tasks) <= 150 or name == "rnaseq"

    def test_runtimes_stay_within_what_was_recorded(self) -> None:
        # some of montage's fitted distributions are Pareto with an infinite mean
        reading = recipes.generate("montage", 300, 1)
        spec = importlib.util.find_spec("wfcommons")
        assert spec is not None
        (package,) = spec.submodule_search_locations or []
        stats = Path(package, "wfchef/recipes/montage/task_type_stats.json")
        recorded = json.loads(stats.read_text())
        for task in reading.workflows[0].tasks:
            assert task.runtime_s <= recorded[task.kind]["runtime"]["max"]
        assert any("cut to the longest recorded one" in warning for warning in reading.warnings)

    def test_a_recipe_without_dependencies_says_so(self) -> None:
        reading = recipes.generate("rnaseq", 130, 1)
        # WfCommons repeats the whole recorded graph of 64 or 63 tasks
        assert len(reading.workflows[0].tasks) in (126, 127, 128)
        assert any("no dependencies" in warning for warning in reading.warnings)

    def test_same_seed_gives_the_same_workflow(self) -> None:
        assert recipes.generate("montage", 120, 5) == recipes.generate("montage", 120, 5)
        other = recipes.generate("montage", 120, 6).workflows[0]
        assert other.tasks != recipes.generate("montage", 120, 5).workflows[0].tasks

    def test_files_have_no_random_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        documents = []
        read = wfformat.read

        def spy(text: str, source: str) -> Reading:
            documents.append(json.loads(text)["workflow"]["specification"])
            return read(text, source)

        monkeypatch.setattr(wfformat, "read", spy)
        recipes.generate("srasearch", 60, 5)
        recipes.generate("srasearch", 60, 5)
        assert documents[0] == documents[1]
        assert documents[0]["files"][0]["id"] == "file-0"

    def test_does_not_depend_on_the_hash_seed_and_is_silent(self) -> None:
        script = (
            "import hashlib, random; random.seed()\n"
            "from dagsail.workloads import recipes\n"
            "for name in ('rnaseq', 'genome', 'montage', 'cycles'):\n"
            "    made = recipes.generate(name, 140, 9)\n"
            "    print(name, hashlib.sha256(repr(made).encode()).hexdigest())\n"
        )
        runs = [_python(script, seed) for seed in ("1", "2")]
        assert runs[0].stdout == runs[1].stdout
        assert runs[0].stdout.count(b"\n") == 4
        assert runs[0].stderr == b""

    def test_leaves_global_state_as_it_was(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("LOGNAME", raising=False)
        random.seed(11)
        np.random.seed(11)  # noqa: NPY002
        expected = (random.random(), np.random.random())  # noqa: NPY002
        random.seed(11)
        np.random.seed(11)  # noqa: NPY002
        level = logging.root.manager.disable
        recipes.generate("montage", 60, 1)
        assert (random.random(), np.random.random()) == expected  # noqa: NPY002
        assert logging.root.manager.disable == level
        assert "LOGNAME" not in os.environ

    def test_downloads_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*args: Any, **kwargs: Any) -> None:
            raise AssertionError("a recipe opened a socket")

        monkeypatch.setattr(socket, "socket", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        assert recipes.generate("blast", 50, 1).workflows


def _python(script: str, hash_seed: str) -> subprocess.CompletedProcess[bytes]:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script],
        env=environment,
        capture_output=True,
        check=True,
    )
