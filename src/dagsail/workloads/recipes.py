"""Workflows from WfCommons recipes: synthetic instances grown from recorded runs.

A recipe holds the graphs of real runs of one application, the patterns in them that repeat, and
the distributions of run times and file sizes by kind of task. Growing repeats patterns of the
largest recorded graph that is not larger than wanted, until no further one fits.

The package `wfcommons` is an optional extra and downloads nothing. It takes seconds to import,
and some two seconds for each thousand tasks.
Source: Coleman et al., "WfChef: Automated generation of accurate scientific workflow generators",
IEEE eScience 2021.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import json
import logging
import os
import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dagsail.domain.errors import InputError, UnknownNameError
from dagsail.workloads import wfformat
from dagsail.workloads.reading import Reading

MAX_TASKS: Final = 100_000
MAX_SEED: Final = 2**32 - 1
_NUM_DUMMIES: Final = 2
"""Recorded graphs count a source and a sink that are no tasks."""


def recipe_names() -> list[str]:
    """Recipes of the installed WfCommons, sorted.

    Raises:
        InputError: if WfCommons is not installed.
    """
    return sorted(path.parent.parent.name for path in _recipes_dir().glob("*/*/summary.json"))


def generate(name: str, num_tasks: int, seed: int) -> Reading:
    """One workflow of an application: same arguments, same workflow.

    WfCommons draws from the global generators of Python and numpy; they are seeded for the call
    and put back after it, so two threads must not generate at the same time.

    Args:
        name: one of `recipe_names`.
        num_tasks: how many tasks at most; a few may be missing where no pattern fits.
        seed: of all randomness, 0 to 2^32 - 1.

    Returns:
        The workflow, and what had to be assumed or mended.

    Raises:
        UnknownNameError: if there is no such recipe.
        InputError: if WfCommons is not installed, or a number is out of range.
    """
    base = _largest_base_graph(name, num_tasks)
    if not 0 <= seed <= MAX_SEED:
        raise InputError(f"recipe '{name}': seed is {seed}; allowed are 0 to {MAX_SEED}")
    with _seeded_and_silent(seed):
        document, num_clipped = _grow(name, base, num_tasks, seed)
    source = f"recipe:{name}:{num_tasks}"
    reading = wfformat.read(json.dumps(document), source)
    workflow = replace(reading.workflows[0], family=name)
    notes = list(reading.warnings)
    if num_clipped:
        notes.append(f"{source}: runtime cut to the longest recorded one ({num_clipped} x)")
    if not workflow.dependencies:
        notes.append(f"{source}: WfCommons knows no dependencies for this application")
    return Reading((workflow,), tuple(notes))


def _recipes_dir() -> Path:
    spec = importlib.util.find_spec("wfcommons")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "recipes need the package wfcommons, which is not installed;"
            " run: pip install 'dagsail[recipes]'"
        )
    return Path(spec.submodule_search_locations[0]) / "wfchef" / "recipes"


def _largest_base_graph(name: str, num_tasks: int) -> str:
    """The recorded graph to grow, found without the slow import."""
    names = recipe_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UnknownNameError(f"unknown recipe '{name}'; {hint}there are: {', '.join(names)}")
    summary = json.loads((_recipes_dir() / name / "microstructures/summary.json").read_text())
    sizes: list[tuple[int, str]] = sorted(
        (graph["order"] - _NUM_DUMMIES, base) for base, graph in summary["base_graphs"].items()
    )
    if not sizes[0][0] <= num_tasks <= MAX_TASKS:
        raise InputError(
            f"recipe '{name}': num_tasks is {num_tasks}; allowed are {sizes[0][0]} to {MAX_TASKS}"
        )
    return max((size, base) for size, base in sizes if size <= num_tasks)[1]


def _grow(name: str, base: str, num_tasks: int, seed: int) -> tuple[dict[str, Any], int]:
    """A WfFormat document, and how many of its run times were clipped."""
    module = importlib.import_module(f"wfcommons.wfchef.recipes.{name}")
    recipe = getattr(module, f"{name.capitalize()}Recipe")(num_tasks=num_tasks)
    folder = _recipes_dir() / name
    # Its own choice of the graph to grow fails for sizes between those of recorded graphs.
    recipe.generate_nx_graph = lambda: _graph(folder / "microstructures", base, num_tasks)
    workflow = recipe.build_workflow(f"{name}-{num_tasks}-{seed}")
    stats = json.loads((folder / "task_type_stats.json").read_text())
    num_clipped = 0
    for task in workflow.tasks.values():
        # Fitted Pareto tails go to hundreds of times the longest recorded run.
        longest_s = stats[task.name]["runtime"]["max"]
        if task.runtime > longest_s:
            task.runtime = longest_s
            num_clipped += 1
    workflow.generate_json()
    return _without_chance(workflow.workflow_json), num_clipped


def _graph(folder: Path, base: str, num_tasks: int) -> Any:
    """The recorded graph `base` grown to at most `num_tasks` tasks, as a networkx DiGraph."""
    duplicate = importlib.import_module("wfcommons.wfchef.duplicate")
    num_vertices = num_tasks + _NUM_DUMMIES
    if json.loads((folder / base / "microstructures.json").read_text()):
        return duplicate.duplicate(folder, base, num_vertices)
    # Without patterns WfCommons repeats the whole graph in the order of a set: not repeatable.
    order = json.loads((folder / "summary.json").read_text())["base_graphs"][base]["order"]
    graph = duplicate.duplicate(folder, base, order)
    tasks = [vertex for vertex in graph.nodes if vertex not in ("SRC", "DST")]
    while graph.order() + len(tasks) <= num_vertices:
        duplicate.duplicate_nodes(graph, tasks)
    return graph


def _without_chance(document: dict[str, Any]) -> dict[str, Any]:
    """The document with files numbered in order instead of named by random UUIDs."""
    specification = document["workflow"]["specification"]
    numbered = {file["id"]: f"file-{number}" for number, file in enumerate(specification["files"])}
    for file in specification["files"]:
        file["id"] = numbered[file["id"]]
    for task in specification["tasks"]:
        for side in ("inputFiles", "outputFiles"):
            task[side] = [numbered[name] for name in task[side]]
    return document


@contextlib.contextmanager
def _seeded_and_silent(seed: int) -> Iterator[None]:
    """Global random states seeded, logging and warnings off; all put back at the end."""
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    logging_level, login = logging.root.manager.disable, os.environ.get("LOGNAME")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (what scipy draws from)
    logging.disable(logging.CRITICAL)
    # WfCommons asks who runs it, which fails in containers whose user has no name.
    os.environ["LOGNAME"] = login or "dagsail"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        logging.disable(logging_level)
        if login is None:
            del os.environ["LOGNAME"]
