"""`inspect`: what workflow files hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from dagsail.commands.options import as_json, files
from dagsail.commands.output import console, table, warn, write_json
from dagsail.commands.values import plural
from dagsail.domain.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from dagsail.domain.workflow import Workflow

_MOST_ROWS: Final = 25


@click.command(short_help="Show what workflow files hold.")
@files
@as_json
def inspect(*, files: tuple[str, ...], as_json: bool) -> None:
    """Show what workflow files hold, and what was repaired or assumed to read them.

    FILE is a workflow file of any accepted format (WfFormat, Pegasus DAX, Argo, Dagsail's own YAML,
    STG, Alibaba 2018, openb pods, Spark TPC-H; plain or gzipped), a family such as 'etl' or
    'etl:50', or a WfCommons recipe such as 'recipe:montage:200'.

    Work is the sum of run times on the reference node (times workers), the critical path is the
    longest chain of them without transfers: no cluster of reference nodes can be faster.

    \b
    Examples:
      dagsail inspect flow.yaml
      dagsail inspect *.json --json
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.compose import workload_of

    workload = workload_of(files)
    entries = [summary(workflow) for workflow in workload.pool(seed=0)]
    warn(workload.warnings)
    if as_json:
        write_json({"workflows": entries, "warnings": list(workload.warnings)}, "-")
    else:
        _show(entries)


def summary(workflow: Workflow) -> dict[str, Any]:
    """The numbers of one workflow, as `inspect --json` gives them."""
    import numpy as np

    from dagsail.domain.graph import critical_path_s, depth_and_width, graph_of

    graph = graph_of(workflow)
    depth, width = depth_and_width(graph)
    return {
        "id": workflow.id,
        "tasks": len(workflow.tasks),
        "edges": len(workflow.dependencies),
        "data_bytes": sum(edge.data_bytes for edge in workflow.dependencies),
        "work_s": sum(task.runtime_s * task.num_workers for task in workflow.tasks),
        "critical_path_s": critical_path_s(
            graph, np.array([task.runtime_s for task in workflow.tasks])
        ),
        "depth": depth,
        "width": width,
        "family": workflow.family,
        "priority": workflow.priority.name,
        "submitted_s": workflow.submitted_s,
        "deadline_s": workflow.deadline_s,
    }


def _show(entries: Sequence[dict[str, Any]]) -> None:
    rows = [
        (
            entry["id"],
            f"{entry['tasks']:,}",
            f"{entry['edges']:,}",
            format_bytes(entry["data_bytes"]),
            format_seconds(entry["work_s"]),
            format_seconds(entry["critical_path_s"]),
            f"{entry['depth']:,}",
            f"{entry['width']:,}",
        )
        for entry in entries[:_MOST_ROWS]
    ]
    columns = (
        "Workflow", ">Tasks", ">Edges", ">Data on edges", ">Work", ">Critical path", ">Depth",
        ">Width",
    )  # fmt: skip
    console().print(table("", columns, rows))
    if len(entries) > _MOST_ROWS:
        click.echo(f"... and {len(entries) - _MOST_ROWS:,} more; --json lists all")
    tasks = sum(entry["tasks"] for entry in entries)
    work = format_seconds(sum(entry["work_s"] for entry in entries))
    click.echo(f"{plural(len(entries), 'workflow')}, {plural(tasks, 'task')}, {work} of work")
