"""Builds the DAG of one workflow: tasks in stages, data on the edges, critical path as it grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dagsail.domain.placement import ANYWHERE, Placement
from dagsail.domain.units import CPU, GPU, MEMORY
from dagsail.domain.workflow import Dependency, Priority, Task, Workflow


@dataclass(frozen=True, slots=True)
class Image:
    """A container image and its compressed size."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What all tasks of one kind share; the meaning of each field is that of `Task`."""

    kind: str
    image: Image
    request: Mapping[str, int]
    io_demand: float = 0.0
    memory_bandwidth_demand: float = 0.0
    max_retries: int = 1
    is_critical: bool = False
    placement: Placement = ANYWHERE


def request(cpu_millicores: int, memory_bytes: int, gpus: int = 0) -> dict[str, int]:
    """Resource amounts of one worker."""
    amounts = {CPU: cpu_millicores, MEMORY: memory_bytes}
    return {**amounts, GPU: gpus} if gpus else amounts


class DagBuilder:
    """Collects the tasks of one workflow, parents before children."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._dependencies: list[Dependency] = []
        self._finish_s: dict[str, float] = {}
        self._count: Counter[str] = Counter()

    def add(
        self,
        program: Program,
        *,
        runtime_s: float,
        input_bytes: float = 0,
        output_bytes: float = 0,
        after: Iterable[str] = (),
        share: float = 1.0,
        num_workers: int = 1,
        comm_bytes: float = 0,
    ) -> str:
        """Add a task and return its id.

        Args:
            program: what kind of task it is.
            runtime_s: expected run time at speed 1.
            input_bytes: input from outside of the workflow.
            output_bytes: everything that it writes.
            after: its parents, each once.
            share: part of each parent's output that it reads: 1 for a copy of everything,
                1 / n for one of n partitions of a shuffle.
            num_workers: workers that must start together.
            comm_bytes: what each of them exchanges with the others.
        """
        kind = program.kind
        task_id = f"{kind}-{self._count[kind]}"
        self._count[kind] += 1
        parents = tuple(after)
        self._tasks[task_id] = Task(
            id=task_id,
            runtime_s=round(runtime_s, 3),
            kind=kind,
            request=program.request,
            num_workers=num_workers,
            comm_bytes=int(comm_bytes),
            input_bytes=int(input_bytes),
            output_bytes=int(output_bytes),
            image=program.image.name,
            image_bytes=program.image.size_bytes,
            is_critical=program.is_critical,
            io_demand=program.io_demand,
            memory_bandwidth_demand=program.memory_bandwidth_demand,
            max_retries=program.max_retries,
            placement=program.placement,
        )
        self._dependencies += (
            Dependency(parent, task_id, int(self._tasks[parent].output_bytes * share))
            for parent in parents
        )
        ready_s = max((self._finish_s[parent] for parent in parents), default=0.0)
        self._finish_s[task_id] = ready_s + runtime_s
        return task_id

    def output_bytes(self, task_ids: Iterable[str]) -> int:
        """What these tasks write, together."""
        return sum(self._tasks[task_id].output_bytes for task_id in task_ids)

    def leaves(self) -> list[str]:
        """Tasks that nothing reads from so far, in the order of their creation."""
        parents = {edge.parent for edge in self._dependencies}
        return [task_id for task_id in self._tasks if task_id not in parents]

    @property
    def critical_path_s(self) -> float:
        """Longest chain of run times at speed 1, without data transfers."""
        return max(self._finish_s.values(), default=0.0)

    def build(
        self,
        workflow_id: str,
        family: str,
        *,
        tenant: str,
        priority: Priority,
        deadline_s: float,
        start_deadline_s: float | None,
        submitted_s: float | None = None,
    ) -> Workflow:
        """The workflow of all tasks added so far."""
        return Workflow(
            id=workflow_id,
            tasks=tuple(self._tasks.values()),
            dependencies=tuple(self._dependencies),
            priority=priority,
            start_deadline_s=start_deadline_s,
            deadline_s=deadline_s,
            tenant=tenant,
            family=family,
            submitted_s=submitted_s,
        )
