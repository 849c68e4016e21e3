"""Graph quantities of task DAGs: topological order, ranks, critical path, levels, width.

Edges are compressed rows: the children of task `t` are `children[start[t]:end[t]]`.
Upward and downward rank are those of Topcuoglu, Hariri and Wu, "Performance-effective and
low-complexity task scheduling for heterogeneous computing", IEEE TPDS 13(3), 2002; averages run
over distinct pairs of nodes only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.workflow import Workflow

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Graph(NamedTuple):
    """A workflow's edges by position, in compressed rows.

    Attributes:
        order: topological order, parents first. int32 (T,)
        parent_start, parents, parent_bytes: edges sorted by child. (T + 1,), (E,), (E,)
        child_start, children, child_bytes: edges sorted by parent. (T + 1,), (E,), (E,)
        twin: for each row of `children`, the row of the same edge in `parents`. int32 (E,)
    """

    order: Ints
    parent_start: Ints
    parents: Ints
    parent_bytes: Floats
    child_start: Ints
    children: Ints
    child_bytes: Floats
    twin: Ints


def graph_of(workflow: Workflow) -> Graph:
    """The graph of a workflow; positions are those of `workflow.tasks`."""
    position = {task.id: i for i, task in enumerate(workflow.tasks)}
    count = len(workflow.dependencies)
    parents = np.fromiter((position[e.parent] for e in workflow.dependencies), np.int32, count)
    children = np.fromiter((position[e.child] for e in workflow.dependencies), np.int32, count)
    data = np.fromiter((e.data_bytes for e in workflow.dependencies), np.float64, count)
    return _graph(len(workflow.tasks), parents, children, data)


def _graph(num_tasks: int, parents: Ints, children: Ints, data: Floats) -> Graph:
    by_child = np.argsort(children, kind="stable")
    by_parent = np.argsort(parents, kind="stable")
    parent_start = np.zeros(num_tasks + 1, np.int32)
    np.cumsum(np.bincount(children, minlength=num_tasks), out=parent_start[1:])
    child_start = np.zeros(num_tasks + 1, np.int32)
    np.cumsum(np.bincount(parents, minlength=num_tasks), out=child_start[1:])
    sorted_children = children[by_parent]
    waiting = np.bincount(children, minlength=num_tasks).tolist()
    starts = child_start.tolist()
    targets = sorted_children.tolist()
    order = [t for t in range(num_tasks) if waiting[t] == 0]
    for task in order:
        for child in targets[starts[task] : starts[task + 1]]:
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(child)
    return Graph(
        np.array(order, np.int32),
        parent_start,
        parents[by_child],
        data[by_child],
        child_start,
        sorted_children,
        data[by_parent],
        np.argsort(by_child)[by_parent].astype(np.int32),
    )


def upward_rank(graph: Graph, cost_s: Floats, seconds_per_byte: float, latency_s: float) -> Floats:
    """Longest mean-cost path from each task to an exit, its own cost included. float64 (T,).

    Args:
        graph: of the workflow.
        cost_s: mean runtime of each task over the nodes it may use. float64 (T,)
        seconds_per_byte: mean inverse bandwidth over distinct node pairs.
        latency_s: mean latency over distinct node pairs, paid by edges that carry data.
    """
    rank = np.zeros(len(cost_s))
    starts = graph.child_start.tolist()
    children = graph.children.tolist()
    comm = _transfer_s(graph.child_bytes, seconds_per_byte, latency_s).tolist()
    cost = cost_s.tolist()
    best = rank.tolist()
    for task in reversed(graph.order.tolist()):
        longest = 0.0
        for edge in range(starts[task], starts[task + 1]):
            longest = max(longest, comm[edge] + best[children[edge]])
        best[task] = cost[task] + longest
    return np.array(best)


def downward_rank(
    graph: Graph, cost_s: Floats, seconds_per_byte: float, latency_s: float
) -> Floats:
    """Longest mean-cost path from an entry to each task, its own cost excluded. float64 (T,).

    Arguments as in `upward_rank`.
    """
    starts = graph.parent_start.tolist()
    parents = graph.parents.tolist()
    comm = _transfer_s(graph.parent_bytes, seconds_per_byte, latency_s).tolist()
    cost = cost_s.tolist()
    best = [0.0] * len(cost)
    for task in graph.order.tolist():
        longest = 0.0
        for edge in range(starts[task], starts[task + 1]):
            parent = parents[edge]
            longest = max(longest, best[parent] + cost[parent] + comm[edge])
        best[task] = longest
    return np.array(best)


def _transfer_s(data_bytes: Floats, seconds_per_byte: float, latency_s: float) -> Floats:
    return np.where(data_bytes > 0, latency_s + data_bytes * seconds_per_byte, 0.0)


def critical_path_s(graph: Graph, cost_s: Floats) -> float:
    """Longest path of task costs, without transfers: no schedule ends sooner."""
    return float(upward_rank(graph, cost_s, 0.0, 0.0).max(initial=0.0))


def depths(graph: Graph) -> Ints:
    """Number of edges on the longest path from an entry to each task. int32 (T,)."""
    hops = downward_rank(graph, np.ones(len(graph.order)), 0.0, 0.0)
    return hops.astype(np.int32)


def hops_to_exit(graph: Graph) -> Ints:
    """Number of edges on the longest path from each task to an exit. int32 (T,)."""
    hops = upward_rank(graph, np.ones(len(graph.order)), 0.0, 0.0) - 1
    return hops.astype(np.int32)


def depth_and_width(graph: Graph) -> tuple[int, int]:
    """Number of levels, and the largest number of tasks on one level."""
    levels = depths(graph)
    return int(levels.max()) + 1, int(np.bincount(levels).max())
