"""Spark TPC-H queries as measured for Decima: stage graphs with the durations of every task.

Format: the profiles of Mao et al., "Learning Scheduling Algorithms for Data Processing Clusters",
SIGCOMM 2019, as JSON: a list of queries with `query`, `size`, `n_stages`, `edges` (pairs of stage
numbers) and `stages`. A stage has three maps from executor count to durations in ms: `first_wave`
(cold), `fresh_durations` (on a new executor) and `rest_wave` (warm).

How a query becomes a workflow:

- A stage becomes as many parallel tasks as `first_wave` and `rest_wave` list under the first
  executor count. Barriers join wide stages; see `dagsail.workloads.stages`.
- Each task runs for the mean of the warm durations under that executor count. Where there are
  none, those under the nearest count are taken; where a stage was never warm, its cold ones.
- Resources are not recorded: each task asks for the defaults.
"""

from __future__ import annotations

import math
from typing import Any, Final

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, GIB, MAX_TIME_S, MEMORY
from dagsail.domain.workflow import Workflow
from dagsail.files import parse_json
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Reading,
    Repairs,
)
from dagsail.workloads.stages import Stage, expand

_WAVES: Final = ("rest_wave", "first_wave", "fresh_durations")
_MAX_DURATION_MS: Final = MAX_TIME_S * 1000
_Waves = dict[str, dict[int, list[float]]]


def looks_like(head: str) -> bool:
    """Whether a text that begins like this holds Spark queries, complete or in parts."""
    return (
        (head.lstrip()[:1] == "[" and '"query"' in head and '"n_stages"' in head)
        or '"average_runtime_ms"' in head
        or _is_graph_list(head)
    )


def read(text: str, source: str) -> Reading:
    """Read a list of queries.

    Raises:
        FormatError: if a field is missing or not what it should be, or if the file holds only the
            graphs or only the durations.
        WorkflowError: if the stages of a query form a cycle.
    """
    if _is_graph_list(text):
        raise FormatError(
            f"{source}: holds stage graphs without task counts or durations;"
            " name the file that has both (a list of objects with 'query', 'edges', 'stages')"
        )
    queries = parse_json(text, source)
    if isinstance(queries, dict) and '"average_runtime_ms"' in text:
        raise FormatError(
            f"{source}: holds durations of stages without their dependencies;"
            " name the file that has both (a list of objects with 'query', 'edges', 'stages')"
        )
    repairs = Repairs(source)
    workflows: dict[str, Workflow] = {}
    for i, query in enumerate(_list(queries, source, "the document")):
        workflow = _workflow(query, source, f"{source}: query {i + 1}", repairs)
        if workflow.id in workflows:
            raise FormatError(f"{source}: query '{workflow.id}' occurs more than once")
        workflows[workflow.id] = workflow
    if not workflows:
        raise FormatError(f"{source}: the list of queries is empty")
    return Reading(tuple(workflows.values()), repairs.warnings())


def _is_graph_list(text: str) -> bool:
    lines = (line for line in text[:4000].splitlines() if line.strip() and line[0] != "#")
    return next(lines, "").rstrip() == "graphs:" and "children:" in text


def _workflow(query: Any, source: str, place: str, repairs: Repairs) -> Workflow:
    if not isinstance(query, dict):
        raise FormatError(f"{place}: is {query!r:.40}; it must be an object")
    number, size = query.get("query"), query.get("size")
    if not _is_whole(number) or not isinstance(size, str) or not size.isprintable():
        raise FormatError(
            f"{place}: query is {number!r:.40} and size is {size!r:.40};"
            " query must be a whole number, size a text such as '2g'"
        )
    name = f"tpch-q{number}-{size[:40]}"
    where = f"{source}: {name}"
    stages = _stages(query, f"tpch-q{number}", where, repairs)
    try:
        tasks, dependencies = expand(stages)
        return Workflow(id=name, tasks=tasks, dependencies=dependencies, family="spark-tpch")
    except WorkflowError as error:
        raise WorkflowError(f"{source}: {error}") from None


def _stages(query: dict[str, Any], program: str, where: str, repairs: Repairs) -> list[Stage]:
    entries = _entries(query, where)
    parents = _parents(query, entries, where, repairs)
    request = {CPU: DEFAULT_CPU_MILLICORES, MEMORY: DEFAULT_MEMORY_BYTES}
    result = []
    for node, entry in entries.items():
        num_tasks, runtime_s = _size(entry, f"{where}, stage {node}", repairs)
        repairs.note(
            f"stage without recorded resources: {request[CPU] / 1000:g} cores and"
            f" {request[MEMORY] // GIB} GiB a task assumed"
        )
        result.append(
            Stage(
                name=f"stage-{node}",
                num_tasks=num_tasks,
                runtime_s=runtime_s,
                kind=f"{program}/stage-{node}",
                request=request,
                parents=parents[node],
            )
        )
    return result


def _entries(query: dict[str, Any], where: str) -> dict[int, dict[str, Any]]:
    entries: dict[int, dict[str, Any]] = {}
    for entry in _list(query.get("stages"), where, "stages"):
        node = entry.get("node") if isinstance(entry, dict) else None
        if not isinstance(node, int) or not _is_whole(node):
            raise FormatError(f"{where}: stage {entry!r:.40} has no whole number 'node'")
        if node in entries:
            raise FormatError(f"{where}: stage {node} occurs more than once")
        entries[node] = entry
    if query.get("n_stages", len(entries)) != len(entries):
        raise FormatError(
            f"{where}: n_stages is {query['n_stages']!r:.40} but {len(entries)} stages are listed"
        )
    return entries


def _parents(
    query: dict[str, Any], entries: dict[int, dict[str, Any]], where: str, repairs: Repairs
) -> dict[int, tuple[str, ...]]:
    parents: dict[int, list[str]] = {node: [] for node in entries}
    for edge in _list(query.get("edges"), where, "edges"):
        if not isinstance(edge, list) or len(edge) != 2 or not all(map(_is_whole, edge)):
            raise FormatError(f"{where}: edge {edge!r:.40} is no pair [parent, child] of stages")
        for end in edge:
            if end not in entries:
                raise FormatError(f"{where}: edge {edge} names stage {end}, which is not listed")
        if edge[0] == edge[1]:
            raise WorkflowError(f"{where}: stage {edge[0]} depends on itself")
        name = f"stage-{edge[0]}"
        if name in parents[edge[1]]:
            repairs.note("edge listed twice: counted once", f"{where} {edge}")
        else:
            parents[edge[1]].append(name)
    return {node: tuple(names) for node, names in parents.items()}


def _size(entry: dict[str, Any], where: str, repairs: Repairs) -> tuple[int, float]:
    """Number of tasks of a stage, and the run time of each in seconds."""
    waves: _Waves = {wave: _durations(entry.get(wave), f"{where}: {wave}") for wave in _WAVES}
    first = next(iter(waves["first_wave"]), None)
    if first is None:
        raise FormatError(f"{where}: first_wave is empty; it must list durations by executor count")
    num_tasks = len(waves["first_wave"][first]) + len(waves["rest_wave"].get(first, []))
    if num_tasks == 0:
        raise FormatError(f"{where}: no task is listed for {first} executors")
    for wave in _WAVES:
        filled = [count for count, values in waves[wave].items() if values]
        if not filled:
            continue
        count = min(filled, key=lambda count: (abs(count - first), count))
        if wave != "rest_wave":
            repairs.note(f"stage without warm durations: {wave} taken", where)
        elif count != first:
            repairs.note("no warm durations for the first executor count: the nearest taken", where)
        mean_ms = sum(waves[wave][count]) / len(waves[wave][count])
        if mean_ms > 0:
            return num_tasks, mean_ms / 1000
    repairs.note(f"stage whose durations are all 0: {DEFAULT_RUNTIME_S:g} s assumed", where)
    return num_tasks, DEFAULT_RUNTIME_S


def _durations(value: Any, where: str) -> dict[int, list[float]]:
    """Durations in ms by executor count, in the order of the file."""
    if not isinstance(value, dict):
        raise FormatError(f"{where} is {value!r:.40}; it must map executor counts to durations")
    result = {}
    for key, durations in value.items():
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise FormatError(f"{where}: key {key[:40]!r} is no executor count")
        for duration in _list(durations, where, f"[{key}]"):
            is_number = isinstance(duration, int | float) and not isinstance(duration, bool)
            if not is_number or not 0 <= duration <= _MAX_DURATION_MS or math.isnan(duration):
                raise FormatError(
                    f"{where}[{key}] holds {duration!r:.40}; durations are milliseconds from 0 to"
                    f" {_MAX_DURATION_MS:g}"
                )
        result[int(key)] = durations
    return result


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9


def _list(value: Any, where: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f"{where}: {what} is {value!r:.40}; it must be a list")
    return value
