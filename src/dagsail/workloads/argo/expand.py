"""Expansion: the templates that an entrypoint calls, flattened into tasks and dependencies.

The result is what runs where everything succeeds. A task whose `when` or `depends` is false
makes no pod, and what waits for it then waits for what it waited for.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.domain.workflow import Dependency, Task
from dagsail.workloads.argo.conditions import decide
from dagsail.workloads.argo.depends import State
from dagsail.workloads.argo.fields import mapping, name, sequence
from dagsail.workloads.argo.hints import Hints, annotations_of, read_hints
from dagsail.workloads.argo.library import Library, Manifest, Template
from dagsail.workloads.argo.plan import Plan, make_plan
from dagsail.workloads.argo.pods import Pod, PodReader
from dagsail.workloads.argo.recorded import RecordedRuntimes
from dagsail.workloads.argo.unmodelled import note_template
from dagsail.workloads.argo.values import (
    Scope,
    as_text,
    is_known,
    item_scope,
    loop_items,
    parameters,
    substitute,
)
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Repairs,
)

MAX_CALLS: Final = 200_000
"""Tasks and steps that one workflow may expand to, those that call others or are skipped too."""
MAX_DEPENDENCIES: Final = 2_000_000
MAX_DEPTH: Final = 100
"""Templates that call each other, one inside the other; Argo has the same bound."""
EXIT_HANDLER: Final = "onExit"

_DEFAULT_POD: Final = Pod({"cpu": DEFAULT_CPU_MILLICORES, "memory": DEFAULT_MEMORY_BYTES})


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a call stands.

    Attributes:
        path: id of the task, or prefix of the ids inside it.
        scope: variables of the calling template.
        after: ids of the tasks that it waits for.
        home: the object whose templates it may call by name.
        callers: the templates around it, outermost first.
    """

    path: str
    scope: Scope
    after: tuple[str, ...]
    home: Manifest
    callers: tuple[Template, ...] = ()

    def inside(self, call_name: str, after: tuple[str, ...], scope: Scope) -> _Frame:
        path = f"{self.path}.{call_name}" if self.path else call_name
        return replace(self, path=path, after=after, scope=scope)


class Expansion:
    """Collects the tasks and dependencies of one workflow."""

    def __init__(
        self,
        library: Library,
        pods: PodReader,
        recorded: RecordedRuntimes,
        global_scope: Mapping[str, str],
        where: str,
        repairs: Repairs,
    ) -> None:
        """Start with nothing.

        Args:
            library: the templates of the same file.
            pods: reads the leaf templates with the defaults of this workflow.
            recorded: run times from the workflow's status.
            global_scope: `workflow.*` variables.
            where: names the workflow in messages.
            repairs: told about everything that is assumed or left out.
        """
        self.tasks: list[Task] = []
        self.dependencies: list[Dependency] = []
        self._library = library
        self._pods = pods
        self._recorded = recorded
        self._global_scope = dict(global_scope)
        self._where = where
        self._repairs = repairs
        self._plans: dict[Template, Plan] = {}
        self._output_bytes: dict[str, int] = {}
        self._has_child: set[str] = set()
        self._calls = 0

    def run(self, template: Template, arguments: Mapping[str, str]) -> None:
        """Expand the entrypoint."""
        self._template(template, arguments, _Frame("", self._global_scope, (), template.home), {})

    def run_exit_handler(self, call: Mapping[str, Any], home: Manifest) -> None:
        """Expand the exit handler of the whole workflow, after everything else."""
        self._global_scope["workflow.status"] = State.SUCCEEDED.value
        frame = _Frame(EXIT_HANDLER, self._global_scope, self._ends(0), home)
        self._instance({"name": EXIT_HANDLER, **call}, frame)

    def add_external(self, reference: str, path: str, after: tuple[str, ...]) -> None:
        """One task of default size for a template in another file."""
        self._repairs.note(
            "templates of other files are referred to; each counts as one task of default size",
            reference,
        )
        self._add(path, reference, _DEFAULT_POD, Hints(), after)

    def _ends(self, start: int) -> tuple[str, ...]:
        """Tasks added since `start` that nothing waits for yet."""
        return tuple(t.id for t in self.tasks[start:] if t.id not in self._has_child)

    def _call(self, call: Mapping[str, Any], frame: _Frame) -> tuple[State, tuple[str, ...]]:
        """Expand a task or step, once for each item of its loop.

        Returns:
            How it ends, and the tasks to wait for if one waits for it.
        """
        start = len(self.tasks)
        where = f"{self._where}: task '{frame.path}'"
        items = loop_items(call, frame.scope, where)
        if items is None or isinstance(items, str):
            if items is not None:
                self._repairs.note(
                    "loops over what an earlier task puts out; their template counts once",
                    f"task '{frame.path}' over {items[:80]}",
                )
            state = self._instance(call, frame)
        else:
            for index, item in enumerate(items):
                scope = ChainMap(item_scope(item), frame.scope)
                self._instance(call, replace(frame, path=f"{frame.path}({index})", scope=scope))
            state = State.SUCCEEDED if items else State.SKIPPED
        return state, self._ends(start) or frame.after

    def _instance(self, call: Mapping[str, Any], frame: _Frame) -> State:
        self._calls += 1
        if self._calls > MAX_CALLS:
            raise FormatError(
                f"{self._where}: expands to more than {MAX_CALLS} tasks; split the workflow"
            )
        where = f"{self._where}: task '{frame.path}'"
        if not self._is_wanted(call.get("when"), frame, where):
            return State.SKIPPED
        called = self._library.called(call, frame.home, where)
        start = len(self.tasks)
        if isinstance(called, str):
            self.add_external(called, frame.path, frame.after)
        elif called in frame.callers:
            self._repairs.note(
                "templates call themselves; their body counts once and the inner call is left out",
                f"task '{frame.path}'",
            )
            return State.SKIPPED
        else:
            arguments = parameters(mapping(call.get("arguments"), where), frame.scope, where)
            self._template(called, arguments, frame, annotations_of(call, where))
        self._hooks(call, frame, start)
        is_daemon = isinstance(called, Template) and called.is_daemon
        return State.DAEMONED if is_daemon else State.SUCCEEDED

    def _is_wanted(self, when: object, frame: _Frame, where: str) -> bool:
        if when is None or when == "":
            return True
        if not isinstance(when, str | bool):
            raise FormatError(f"{where}: when must be a condition in quotes")
        condition = " ".join(substitute(as_text(when), frame.scope).split())
        decision = decide(condition)
        if decision is None:
            self._repairs.note(
                "conditions that only a run can decide count as true",
                f"task '{frame.path}' when {condition[:80]}",
            )
        elif not decision:
            self._repairs.note(
                "tasks whose condition is false are left out", f"task '{frame.path}'"
            )
        return decision is not False

    def _hooks(self, call: Mapping[str, Any], frame: _Frame, start: int) -> None:
        """Exit hooks of one task; what waits for the task waits for them, too."""
        if not call.get("hooks") and not call.get("onExit"):
            return
        where = f"{self._where}: task '{frame.path}'"
        hooks = mapping(call.get("hooks"), f"{where}: hooks")
        inner = frame.inside(EXIT_HANDLER, self._ends(start) or frame.after, frame.scope)
        for key, value in hooks.items():
            if key == "exit":
                hook = mapping(value, f"{where}: hooks.exit")
                if hook.get("expression"):
                    hook = {**hook, "when": f"{{{{={hook['expression']}}}}}"}
                self._instance({"name": EXIT_HANDLER, **hook}, inner)
            else:
                self._repairs.note("hooks other than exit are left out", f"task '{frame.path}'")
        if call.get("onExit") and "exit" not in hooks:
            self._instance({"name": EXIT_HANDLER, "template": call["onExit"]}, inner)

    def _template(
        self,
        template: Template,
        arguments: Mapping[str, str],
        frame: _Frame,
        notes: Mapping[str, Any],
    ) -> None:
        if len(frame.callers) >= MAX_DEPTH:
            raise FormatError(f"{template.where}: called more than {MAX_DEPTH} templates deep")
        inputs = mapping(template.body.get("inputs"), f"{template.where}: inputs")
        given = {**parameters(inputs, self._global_scope, template.where), **arguments}
        scope = dict(self._global_scope)
        scope.update((f"inputs.parameters.{key}", value) for key, value in given.items())
        note_template(template, self._repairs)
        if template.is_leaf:
            boundary = frame.callers[-1] if frame.callers else None
            pod = self._pods.read(template, boundary, scope)
            hints = read_hints(notes, template.where, self._repairs)
            self._add(frame.path or template.name, template.name, pod, hints, frame.after)
            return
        inner = _Frame(frame.path, scope, frame.after, template.home, (*frame.callers, template))
        (self._dag if template.kind == "dag" else self._steps)(template, inner, scope)

    def _dag(self, template: Template, frame: _Frame, scope: dict[str, str]) -> None:
        if template not in self._plans:
            self._plans[template] = make_plan(template.body["dag"], template.where, self._repairs)
        plan = self._plans[template]
        targets = substitute(plan.target, scope)
        if not is_known(targets):
            self._repairs.note("targets name a parameter without a value; all tasks are kept")
            targets = ""
        states: dict[str, State] = {}
        ends: dict[str, tuple[str, ...]] = {}
        for task in plan.needed_for(targets.split(), template.where):
            condition = plan.conditions[task]
            parents = (end for parent in condition.names for end in ends[parent])
            after = tuple(dict.fromkeys(parents)) if condition.names else frame.after
            inner = frame.inside(task, after, scope)
            if condition.holds(states):
                states[task], ends[task] = self._call(plan.calls[task], inner)
            else:
                states[task], ends[task] = State.OMITTED, after
                self._repairs.note(
                    "tasks that run only where another fails or is skipped are left out",
                    f"task '{inner.path}'",
                )
            scope[f"tasks.{task}.status"] = states[task].value

    def _steps(self, template: Template, frame: _Frame, scope: dict[str, str]) -> None:
        after = frame.after
        seen: set[str] = set()
        for group in sequence(template.body["steps"], f"{template.where}: steps"):
            start = len(self.tasks)
            # A step that is not in a list of its own is a group of one.
            for value in group if isinstance(group, list) else [group]:
                call = mapping(value, f"{template.where}: a step")
                step = name(call.get("name"), f"{template.where}: the name of a step")
                if step in seen:
                    raise FormatError(
                        f"{template.where}: two steps are named '{step}'; names must be unique"
                    )
                seen.add(step)
                state, _ = self._call(call, frame.inside(step, after, scope))
                scope[f"steps.{step}.status"] = state.value
            after = self._ends(start) or after

    def _add(self, task_id: str, kind: str, pod: Pod, hints: Hints, after: tuple[str, ...]) -> None:
        hints = hints.over(pod.hints)
        runtime_s = hints.runtime_s
        if runtime_s is None:
            runtime_s = self._recorded.of(task_id, kind)
        if runtime_s is None:
            runtime_s = DEFAULT_RUNTIME_S
            self._repairs.note(
                f"no run time is stated; {DEFAULT_RUNTIME_S:g} s stand in", f"task '{task_id}'"
            )
        output_bytes = hints.output_bytes or 0
        self.tasks.append(
            Task(
                id=task_id,
                runtime_s=runtime_s,
                kind=kind,
                request=pod.request,
                output_bytes=output_bytes,
                image=pod.image,
                priority=pod.priority,
                max_retries=pod.max_retries,
                timeout_s=pod.timeout_s,
                placement=pod.placement,
            )
        )
        self._output_bytes[task_id] = output_bytes
        self._has_child.update(after)
        self.dependencies.extend(
            Dependency(parent, task_id, self._output_bytes[parent]) for parent in after
        )
        if len(self.dependencies) > MAX_DEPENDENCIES:
            raise FormatError(
                f"{self._where}: expands to more than {MAX_DEPENDENCIES} dependencies;"
                " join wide stages by one task"
            )
