"""Stages: sets of alike tasks, of which each set waits for whole other sets.

Alibaba and Spark traces describe work this way. A dependency between a stage of n tasks and one of
m tasks is n * m dependencies between tasks; where n + m are fewer, a *barrier* stands between:
a task `<stage>-done` of kind `barrier` with run time 0 and an empty request, which waits for the
n tasks and for which the m tasks wait. It changes neither the order nor the work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dagsail.domain.workflow import Dependency, Task

BARRIER_KIND: Final = "barrier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A set of `num_tasks` alike tasks, each of which waits for all tasks of all `parents`.

    Attributes:
        name: unique in its workflow. A stage of one task gives the task this name, a wider one
            calls its tasks `name[0]`, `name[1]`, ...
        runtime_s: run time of each task.
        request: of each task.
        parents: names of other stages, each at most once.
    """

    name: str
    num_tasks: int
    runtime_s: float
    kind: str
    request: Mapping[str, int]
    parents: tuple[str, ...] = ()

    def task_ids(self) -> list[str]:
        """Ids of the stage's tasks."""
        if self.num_tasks == 1:
            return [self.name]
        return [f"{self.name}[{i}]" for i in range(self.num_tasks)]


def expand(stages: Sequence[Stage]) -> tuple[tuple[Task, ...], tuple[Dependency, ...]]:
    """Tasks and dependencies of stages, in the order of the stages; parents must be among them."""
    num_waiting = {stage.name: 0 for stage in stages}
    for stage in stages:
        for parent in stage.parents:
            num_waiting[parent] += stage.num_tasks
    tasks: list[Task] = []
    dependencies: list[Dependency] = []
    exits: dict[str, list[str]] = {}
    for stage in stages:
        exits[stage.name] = ids = stage.task_ids()
        tasks += [
            Task(id=name, runtime_s=stage.runtime_s, kind=stage.kind, request=stage.request)
            for name in ids
        ]
        if stage.num_tasks * num_waiting[stage.name] > stage.num_tasks + num_waiting[stage.name]:
            barrier = f"{stage.name}-done"
            tasks.append(Task(id=barrier, runtime_s=0.0, kind=BARRIER_KIND))
            dependencies += [Dependency(name, barrier) for name in ids]
            exits[stage.name] = [barrier]
    for stage in stages:
        dependencies += [
            Dependency(before, name)
            for parent in stage.parents
            for before in exits[parent]
            for name in stage.task_ids()
        ]
    return tuple(tasks), tuple(dependencies)
