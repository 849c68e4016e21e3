"""The plan of one `dag` template: its tasks, what each waits for, and the order to expand them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.domain.workflow import Dependency, Task, Workflow
from dagsail.workloads.argo.depends import Condition, all_succeed, parse
from dagsail.workloads.argo.fields import mapping, name, sequence, text, texts
from dagsail.workloads.reading import Repairs

_TAG: Final = re.compile(r"\{\{([^{}]*)\}\}")
_TASK: Final = re.compile(r"\btasks(?:\.([\w-]+)|\[\s*['\"]([\w-]+)['\"]\s*\])")


@dataclass(frozen=True, slots=True)
class Plan:
    """One `dag` template, checked: names are unique and known, and there is no cycle.

    Attributes:
        calls: each task of the DAG as written, parents before children, else in file order.
        conditions: what each task waits for and when it runs.
        target: the text of `target`; empty means every task.
    """

    calls: Mapping[str, Mapping[str, Any]]
    conditions: Mapping[str, Condition]
    target: str

    def needed_for(self, targets: Iterable[str], where: str) -> list[str]:
        """The named tasks and all that they wait for, in order; all where none is named.

        Raises:
            FormatError: if a target is not a task of this DAG.
        """
        waiting = list(targets)
        if not waiting:
            return list(self.calls)
        needed: set[str] = set()
        while waiting:
            target = waiting.pop()
            if target not in self.calls:
                raise FormatError(f"{where}: target '{target}' is not a task of this dag")
            if target not in needed:
                needed.add(target)
                waiting.extend(self.conditions[target].names)
        return [task for task in self.calls if task in needed]


def make_plan(dag: object, where: str, repairs: Repairs) -> Plan:
    """Read a `dag` template.

    Raises:
        FormatError: on a malformed task.
        WorkflowError: on a duplicate or unknown task, or a cycle (named).
    """
    fields = mapping(dag, f"{where}: dag")
    calls: dict[str, Mapping[str, Any]] = {}
    for entry in sequence(fields.get("tasks"), f"{where}: dag.tasks"):
        call = mapping(entry, f"{where}: a task of the dag")
        task = name(call.get("name"), f"{where}: the name of a task")
        if task in calls:
            raise FormatError(f"{where}: two tasks are named '{task}'; names must be unique")
        calls[task] = call
    if not calls:
        raise FormatError(f"{where}: dag has no tasks; list some under dag.tasks")
    conditions = {task: _condition(call, f"{where}, task '{task}'") for task, call in calls.items()}
    _check_graph(conditions, where)
    order = _in_order(conditions)
    completed = _with_implied(order, calls, conditions, where, repairs)
    if completed != conditions:
        _check_graph(completed, where)
        order = _in_order(completed)
    return Plan(
        {task: calls[task] for task in order},
        completed,
        text(fields.get("target"), f"{where}: dag.target"),
    )


def _condition(call: Mapping[str, Any], where: str) -> Condition:
    if call.get("depends") and call.get("dependencies"):
        raise FormatError(f"{where}: has both depends and dependencies; keep one")
    expression = text(call.get("depends"), f"{where}: depends")
    if expression.strip():
        return parse(expression, where)
    names = sequence(call.get("dependencies"), f"{where}: dependencies")
    return all_succeed([name(entry, f"{where}: a dependency") for entry in names])


def _check_graph(conditions: Mapping[str, Condition], where: str) -> None:
    Workflow(
        id=where.replace("'", ""),
        tasks=tuple(Task(id=task, runtime_s=0.0) for task in conditions),
        dependencies=tuple(
            Dependency(parent, task)
            for task, condition in conditions.items()
            for parent in condition.names
        ),
    )


def _in_order(conditions: Mapping[str, Condition]) -> list[str]:
    """Parents before children, else as in the file. The graph must be acyclic."""
    order: dict[str, None] = {}
    for root in conditions:
        waiting = [root]
        while waiting:
            task = waiting[-1]
            missing = [parent for parent in conditions[task].names if parent not in order]
            if missing:
                waiting.extend(reversed(missing))
            else:
                order[task] = None
                waiting.pop()
    return list(order)


def _with_implied(
    order: list[str],
    calls: Mapping[str, Mapping[str, Any]],
    conditions: Mapping[str, Condition],
    where: str,
    repairs: Repairs,
) -> dict[str, Condition]:
    """Add a dependency on every task whose outputs a task reads without waiting for it."""
    place = {task: index for index, task in enumerate(order)}
    ancestors: dict[str, int] = {}  # bit i is set where order[i] is an ancestor
    result: dict[str, Condition] = {}
    for task in order:
        known = 0
        for parent in conditions[task].names:
            known |= ancestors[parent] | 1 << place[parent]
        ancestors[task] = known
        implied = [
            other
            for other in _mentioned(calls[task])
            if other in place and other != task and not known >> place[other] & 1
        ]
        result[task] = _also_after(conditions[task], implied)
        for other in implied:
            ancestors[task] |= ancestors.get(other, 0) | 1 << place[other]
            repairs.note(
                "tasks read outputs of a task that they do not depend on; a dependency is added",
                f"{where}, task '{task}' reads '{other}'",
            )
    return {task: result[task] for task in conditions}


def _also_after(condition: Condition, implied: list[str]) -> Condition:
    if not implied:
        return condition
    names = tuple(dict.fromkeys((*condition.names, *implied)))
    return Condition(names, condition.holds)


def _mentioned(call: Mapping[str, Any]) -> list[str]:
    """Tasks whose outputs a task names in its arguments, loop or condition."""
    found: dict[str, None] = {}
    parts = [
        call.get(key) for key in ("arguments", "withParam", "withSequence", "withItems", "when")
    ]
    for value in texts(parts):
        for tag in _TAG.findall(value) if "{{" in value else ():
            for dotted, quoted in _TASK.findall(tag):
                found[dotted or quoted] = None
    return list(found)
