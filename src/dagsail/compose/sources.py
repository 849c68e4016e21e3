"""What an argument names: a file, a family, a recipe, a built-in cluster."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dagsail.domain.errors import FormatError, InputError, UnknownNameError
from dagsail.workloads.families import DEFAULT_COUNTS, FAMILIES

if TYPE_CHECKING:
    from dagsail.domain.cluster import Cluster
    from dagsail.domain.workflow import Workflow
    from dagsail.workloads.reading import Reading
    from dagsail.workloads.workload import Workload

MAX_WORKFLOWS: Final = 1_000_000

_RECIPE: Final = "recipe:"
_KIND: Final = re.compile(r"""\bkind["']?\s*:""")


def is_name(argument: str) -> bool:
    """Whether an argument is a built-in name, which wins over a file of that name."""
    from dagsail.clusters.catalog import CLUSTERS

    is_family = argument.partition(":")[0] in FAMILIES
    return is_family or argument in CLUSTERS or argument.startswith(_RECIPE)


def workload_of(arguments: Sequence[str]) -> Workload:
    """Files, families (`etl`, `etl:50`) and recipes (`recipe:NAME:TASKS`) as one workload.

    The name of a family wins over a file of that name; write `./etl` for the file.

    Raises:
        UnknownNameError: if an argument is neither a file nor a name.
        InputError: if a file cannot be read as workflows, or a number is out of range.
    """
    from dagsail.workloads.workload import FamilyShare, Workload

    workflows: list[Workflow] = []
    families: list[FamilyShare] = []
    warnings: list[str] = []
    num_recipes = 0
    for argument in arguments:
        name, _, count = argument.partition(":")
        if name in FAMILIES:
            families.append(FamilyShare(name, _count_of(argument, name, count)))
            continue
        if argument.startswith(_RECIPE):
            reading = _recipe(argument, seed=num_recipes)
            num_recipes += 1
        else:
            reading = _file(argument)
        workflows += reading.workflows
        warnings += reading.warnings
    return Workload(tuple(workflows), tuple(families), tuple(warnings))


def _count_of(argument: str, name: str, count: str) -> int:
    if argument == name:
        return DEFAULT_COUNTS[name]
    return _whole_number(argument, "the number of workflows", count, MAX_WORKFLOWS)


def _whole_number(argument: str, what: str, text: str, largest: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= largest:
        raise InputError(f"{argument}: {what} is {text[:20]!r}; allowed are 1 to {largest}")
    return number


def _recipe(argument: str, seed: int) -> Reading:
    from dagsail.workloads import recipes

    name, _, size = argument.removeprefix(_RECIPE).partition(":")
    if not size:
        raise InputError(f"{argument}: write recipe:NAME:TASKS, such as recipe:montage:200")
    size_limit = recipes.MAX_TASKS
    return recipes.generate(name, _whole_number(argument, "the size", size, size_limit), seed)


def _file(argument: str) -> Reading:
    if not argument or "\0" in argument:
        raise InputError(f"{argument!r}: no file has such a name")
    path = Path(argument)
    looks_like_path = os.sep in argument or path.suffix or path.exists()
    if not looks_like_path:
        name = argument.partition(":")[0]
        near = difflib.get_close_matches(name, [entry.name for entry in FAMILIES], 1, 0.6)
        hint = f"did you mean '{near[0]}'? " if near else ""
        families = ", ".join(entry.name for entry in FAMILIES)
        raise UnknownNameError(
            f"'{argument}' is no file and no name; {hint}families are {families};"
            " recipes are written recipe:NAME:TASKS"
        )
    from dagsail.workloads.formats import read_workflows

    return read_workflows(path)


def cluster_of(name_or_path: str) -> tuple[Cluster, tuple[str, ...]]:
    """A built-in cluster, or one from a file: native YAML, openb machines, Node manifests.

    Returns:
        The cluster, and what was assumed to get it.

    Raises:
        UnknownNameError: if it is neither a built-in name nor a file.
        InputError: if the file holds no valid cluster.
    """
    from dagsail.clusters import catalog
    from dagsail.files import read_text
    from dagsail.workloads import nodes, openb
    from dagsail.workloads.formats import MAX_YAML_BYTES

    path = Path(name_or_path)
    if name_or_path in catalog.CLUSTERS or "\0" in name_or_path or not path.exists():
        return catalog.load_cluster(name_or_path), ()
    text = read_text(path)
    head = text[:4096]
    if openb.looks_like_nodes(head):
        return openb.read_nodes(text, name_or_path)
    if len(text) > MAX_YAML_BYTES:
        raise InputError(f"{name_or_path}: too large for a cluster file ({len(text):,} characters)")
    if nodes.looks_like(head):
        return nodes.read_node_manifests(text, name_or_path)
    if not _KIND.search(head):
        raise FormatError(
            f"{name_or_path}: no cluster file; accepted are Dagsail's own YAML (kind: Cluster),"
            " openb machines as CSV, and Kubernetes Node manifests"
        )
    return catalog.read(text, name_or_path), ()
