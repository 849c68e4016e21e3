"""Task, Dependency, Workflow: what users submit.

A workflow is checked when it is made, so nothing downstream meets a cycle, a dangling edge or a
number that is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from dagsail.domain.errors import WorkflowError
from dagsail.domain.placement import ANYWHERE, Placement
from dagsail.domain.units import MAX_BYTES, MAX_COUNT, MAX_TIME_S, max_amount

_EMPTY: Final[Mapping[str, float]] = MappingProxyType({})


class Priority(IntEnum):
    """Urgency of a workflow or task. P0 is the most urgent, P3 the least."""

    P0 = 0
    P1 = 1
    P2 = 2
    P3 = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A unit of work placed on one node (or, with several workers, on several at once).

    Attributes:
        id: unique within its workflow.
        runtime_s: expected run time on a node of speed 1, without data transfer. This is what
            policies see; a simulation may draw the true runtime around it.
        runtime_s_by_node_type: expected run time by node type; replaces `runtime_s` and the
            node's speed where the type is listed.
        kind: the class of alike tasks (program or transformation name), for history and speed.
        request: resource amounts of one worker, in the units of `dagsail.domain.units`.
        num_workers: workers that must start together, each with its own `request`.
        comm_bytes: bytes that each worker exchanges with the others over the whole run.
        input_bytes: input that no task of the workflow produces.
        output_bytes: everything the task writes.
        image: container image; empty means none to pull.
        image_bytes: compressed size of the image.
        priority: overrides the workflow's priority.
        start_deadline_s, deadline_s: latest start and finish, seconds after submission.
        is_critical: the user marks the task as critical; a soft hint.
        io_demand: share of a node's disk bandwidth that the task uses while running, 0..1.
        memory_bandwidth_demand: likewise for memory bandwidth, 0..1.
        max_retries: how often a failed attempt is repeated.
        timeout_s: an attempt that runs longer fails.
        placement: which nodes are allowed and preferred.
    """

    id: str
    runtime_s: float
    runtime_s_by_node_type: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    kind: str = ""
    request: Mapping[str, int] = field(default_factory=dict)
    num_workers: int = 1
    comm_bytes: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    image: str = ""
    image_bytes: int = 0
    priority: Priority | None = None
    start_deadline_s: float | None = None
    deadline_s: float | None = None
    is_critical: bool = False
    io_demand: float = 0.0
    memory_bandwidth_demand: float = 0.0
    max_retries: int = 0
    timeout_s: float | None = None
    placement: Placement = ANYWHERE


@dataclass(frozen=True, slots=True)
class Dependency:
    """`child` starts after `parent` has finished; `data_bytes` flow from one to the other."""

    parent: str
    child: str
    data_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A DAG of tasks submitted together.

    Attributes:
        id: name of the workflow; unique within a run after arrivals are drawn.
        tasks: in the order of the source; ids are unique.
        dependencies: at most one edge for each ordered pair of tasks.
        priority: P0 (most urgent) .. P3.
        start_deadline_s, deadline_s: latest first start and last finish, seconds after submission.
        tenant: who owns it, for quotas and fair share.
        family: what kind of workload it is, for statistics.
        submitted_s: recorded submission time; None where the source has none.

    Raises:
        WorkflowError: on a duplicate id, an unknown or self dependency, a cycle (named), or a
            number that is negative, not finite or absurd.
    """

    id: str
    tasks: tuple[Task, ...]
    dependencies: tuple[Dependency, ...] = ()
    priority: Priority = Priority.P2
    start_deadline_s: float | None = None
    deadline_s: float | None = None
    tenant: str = "default"
    family: str = ""
    submitted_s: float | None = None

    def __post_init__(self) -> None:
        if not self.tasks:
            raise WorkflowError(f"workflow '{self.id}' has no tasks")
        _check_seconds(f"workflow '{self.id}'", "deadline_s", self.deadline_s)
        _check_seconds(f"workflow '{self.id}'", "start_deadline_s", self.start_deadline_s)
        _check_seconds(f"workflow '{self.id}'", "submitted_s", self.submitted_s)
        seen: set[str] = set()
        for task in self.tasks:
            if task.id in seen:
                raise WorkflowError(
                    f"workflow '{self.id}': task id '{task.id}' occurs more than once;"
                    " ids must be unique"
                )
            seen.add(task.id)
            _check_task(self.id, task)
        _check_dependencies(self.id, seen, self.dependencies)
        topological_order(self)


class Arrival(NamedTuple):
    """A workflow and when it is submitted, seconds after the start of the run."""

    time_s: float
    workflow: Workflow


def _check_task(workflow_id: str, task: Task) -> None:
    where = f"workflow '{workflow_id}', task '{task.id}'"
    _check_seconds(where, "runtime_s", task.runtime_s)
    for node_type, runtime_s in task.runtime_s_by_node_type.items():
        _check_seconds(where, f"runtime_s_by_node_type[{node_type}]", runtime_s)
    for name in ("start_deadline_s", "deadline_s", "timeout_s"):
        _check_seconds(where, name, getattr(task, name))
    for name in ("comm_bytes", "input_bytes", "output_bytes", "image_bytes"):
        _check_range(where, name, getattr(task, name), MAX_BYTES)
    for resource, amount in task.request.items():
        _check_range(where, f"request[{resource}]", amount, max_amount(resource))
    for name in ("io_demand", "memory_bandwidth_demand"):
        _check_range(where, name, getattr(task, name), 1.0)
    _check_range(where, "max_retries", task.max_retries, MAX_COUNT)
    if not 1 <= task.num_workers <= 10_000:
        raise WorkflowError(f"{where}: num_workers is {task.num_workers}; allowed are 1 to 10000")


def _check_seconds(where: str, name: str, value: float | None) -> None:
    if value is not None:
        _check_range(where, name, value, MAX_TIME_S)


def _check_range(where: str, name: str, value: float, largest: float) -> None:
    if value > largest and value != math.inf:
        raise WorkflowError(f"{where}: {name} is more than {largest:g}; check the unit")
    if not math.isfinite(value) or value < 0:
        raise WorkflowError(f"{where}: {name} is {value}; it must be finite and not negative")


def _check_dependencies(
    workflow_id: str, task_ids: set[str], dependencies: Iterable[Dependency]
) -> None:
    pairs: set[tuple[str, str]] = set()
    for edge in dependencies:
        for role, name in (("parent", edge.parent), ("child", edge.child)):
            if name not in task_ids:
                other = edge.child if role == "parent" else edge.parent
                raise WorkflowError(
                    f"workflow '{workflow_id}': task '{other}' names an unknown {role} '{name}'"
                )
        if edge.parent == edge.child:
            raise WorkflowError(f"workflow '{workflow_id}': task '{edge.child}' depends on itself")
        if (edge.parent, edge.child) in pairs:
            raise WorkflowError(
                f"workflow '{workflow_id}': dependency '{edge.parent}' -> '{edge.child}'"
                " occurs more than once; merge the two and add their data"
            )
        pairs.add((edge.parent, edge.child))
        where = f"workflow '{workflow_id}', dependency '{edge.parent}' -> '{edge.child}'"
        _check_range(where, "data_bytes", edge.data_bytes, MAX_BYTES)


def topological_order(workflow: Workflow) -> list[str]:
    """Task ids, parents before children; among equals the order of the source.

    Raises:
        WorkflowError: if the dependencies contain a cycle; the message names its tasks.
    """
    waiting_for = {task.id: 0 for task in workflow.tasks}
    children: dict[str, list[str]] = {task.id: [] for task in workflow.tasks}
    for edge in workflow.dependencies:
        waiting_for[edge.child] += 1
        children[edge.parent].append(edge.child)
    order = [name for name, count in waiting_for.items() if count == 0]
    for name in order:
        for child in children[name]:
            waiting_for[child] -= 1
            if waiting_for[child] == 0:
                order.append(child)
    if len(order) < len(workflow.tasks):
        cycle = _find_cycle({n for n, count in waiting_for.items() if count > 0}, children)
        raise WorkflowError(
            f"workflow '{workflow.id}' has a cycle: {' -> '.join(cycle)};"
            " a workflow must be acyclic, remove one of these dependencies"
        )
    return order


def _find_cycle(left: set[str], children: Mapping[str, list[str]]) -> list[str]:
    """One cycle among the tasks that no topological order reaches, closed, at most 8 names long."""
    parent_of = {child: name for name in sorted(left) for child in children[name] if child in left}
    name = min(left & parent_of.keys())
    seen: dict[str, int] = {}
    path: list[str] = []
    while name not in seen:
        seen[name] = len(path)
        path.append(name)
        name = parent_of[name]
    cycle = [name, *reversed(path[seen[name] :])]
    return cycle if len(cycle) <= 8 else [*cycle[:4], "...", *cycle[-3:]]
