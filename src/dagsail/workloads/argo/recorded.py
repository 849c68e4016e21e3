"""Run times that a finished or running workflow recorded in its `status.nodes`."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.workloads.argo.fields import mapping, text
from dagsail.workloads.reading import Repairs

_GROUP: Final = re.compile(r"\[\d+\]")
_ITEM: Final = re.compile(r"\((\d+):[^()]*\)")
_ATTEMPT: Final = re.compile(r"\(\d+\)$")


@dataclass(frozen=True, slots=True)
class RecordedRuntimes:
    """Mean seconds from `startedAt` to `finishedAt` of the pods of a task or template.

    `startedAt` is when the pod was made, so the figures hold its wait for a node as well.
    Attempts that succeeded count; where none did, the failed ones do.
    """

    by_task: Mapping[str, float]
    by_template: Mapping[str, float]

    def of(self, task_id: str, template: str) -> float | None:
        """Seconds of that task, else of its template's other pods; None where none ran."""
        return self.by_task.get(task_id, self.by_template.get(template))


def read_status(status: object, where: str, repairs: Repairs) -> RecordedRuntimes:
    """Read `status`.

    Raises:
        FormatError: if it is malformed.
    """
    fields = mapping(status, f"{where}: status")
    if fields.get("compressedNodes") or fields.get("offloadNodeStatusVersion"):
        repairs.note("recorded run times are compressed or stored elsewhere and are not read")
    tasks: dict[str, list[tuple[bool, float]]] = {}
    templates: dict[str, list[tuple[bool, float]]] = {}
    nodes = mapping(fields.get("nodes"), f"{where}: status.nodes")
    root = _root_name(nodes)
    for key, value in nodes.items():
        node = mapping(value, f"{where}: status.nodes.{key}")
        place = f"{where}: status.nodes.{key}"
        if node.get("type") != "Pod":
            continue
        started, ended = _time(node.get("startedAt"), place), _time(node.get("finishedAt"), place)
        if started is None or ended is None:
            continue
        if ended - started < timedelta(0):
            repairs.note("recorded pods that end before they start are left out", key)
            continue
        sample = (node.get("phase") == "Succeeded", (ended - started).total_seconds())
        task_id = _task_id(text(node.get("name"), f"{place}.name"), root)
        for name in dict.fromkeys((task_id, _ATTEMPT.sub("", task_id))):
            tasks.setdefault(name, []).append(sample)
        template = text(node.get("templateName"), f"{place}.templateName")
        templates.setdefault(template, []).append(sample)
    return RecordedRuntimes(_means(tasks), _means(templates))


def _root_name(nodes: Mapping[str, Any]) -> str:
    """The node of the whole workflow: the one that its own id names."""
    names = [n.get("name") for n in nodes.values() if isinstance(n, dict)]
    return min((n for n in names if isinstance(n, str)), key=len, default="")


def _task_id(node_name: str, root: str) -> str:
    """`wf[0].a.b(0:x)` as the id that this reader gives: `a.b(0)`."""
    path = _GROUP.sub("", node_name.removeprefix(root))
    return _ITEM.sub(r"(\1)", path).lstrip(".")


def _time(value: object, where: str) -> datetime | None:
    stamp = text(value, f"{where}: a time")
    try:
        return datetime.fromisoformat(stamp) if stamp else None
    except ValueError:
        raise FormatError(
            f"{where}: '{stamp[:40]}' is not a time such as 2020-06-02T00:26:35Z"
        ) from None


def _means(samples: Mapping[str, list[tuple[bool, float]]]) -> dict[str, float]:
    return {
        name: statistics.fmean(
            [value for succeeded, value in found if succeeded] or [value for _, value in found]
        )
        for name, found in samples.items()
    }
