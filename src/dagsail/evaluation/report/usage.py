"""Usage: how full each node was over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.evaluation.occupation import Occupation, occupation
from dagsail.evaluation.window import whole_run

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Usage(NamedTuple):
    """How full rows of nodes were in each stretch of time. Shapes: Y rows, B stretches.

    Attributes:
        rows: name of each row; a node, or several neighbours. (Y,)
        nodes_a_row: nodes in each row but perhaps the last.
        edges_s: ends of the stretches. (B + 1,)
        ratio: share of the dominant resource that was held: mean over time and nodes. (Y, B)
        resource: column of that resource; of the fullest node in the row. (Y, B)
    """

    rows: tuple[str, ...]
    nodes_a_row: int
    edges_s: Floats
    ratio: Floats
    resource: Ints


def usage_of(run: Run, max_rows: int, num_stretches: int) -> Usage:
    """Usage from the first arrival to the end, in equal stretches.

    Args:
        run: finished.
        max_rows: more nodes than this are put together, neighbours first.
        num_stretches: of time.
    """
    window = whole_run(run)
    edges_s = np.linspace(window.start_s, window.end_s, num_stretches + 1)
    share = held_ratio(occupation(run), run.snapshot.node_allocatable, edges_s)
    ratio, resource = share.max(axis=2), share.argmax(axis=2)
    size = -(-len(ratio) // max_rows)
    first = np.arange(0, len(ratio), size)
    count = np.diff(first, append=len(ratio))
    fullest = np.array(
        [i + ratio[i : i + size].argmax(axis=0) for i in first.tolist()], np.int64
    ).reshape(len(first), num_stretches)
    return Usage(
        rows=_row_names(run.names.nodes, first.tolist(), size),
        nodes_a_row=size,
        edges_s=edges_s,
        ratio=np.add.reduceat(ratio, first, axis=0) / count[:, None],
        resource=np.take_along_axis(resource, fullest, axis=0),
    )


def held_ratio(held: Occupation, allocatable: Any, edges_s: Floats) -> Floats:
    """Mean share of each resource of each node that was held between each pair of edges.

    Args:
        held: what lay where and when.
        allocatable: of each node. int64 (N, R)
        edges_s: increasing. (B + 1,)

    Returns:
        float64 (N, B, R); 0 where the node has none of the resource.
    """
    num_nodes, num_resources = allocatable.shape
    share = held.request / np.maximum(allocatable[held.node], 1)
    # What is held up to time t is the sum over starts and ends so far of change * (t - time).
    time = np.concatenate([held.start_s, held.end_s]) - edges_s[0]
    change = np.concatenate([share, -share])
    cell = np.concatenate([held.node, held.node]) * (len(edges_s) + 1)
    cell += np.searchsorted(edges_s - edges_s[0], time)
    shape = (num_nodes, len(edges_s) + 1)
    used = np.empty((num_nodes, len(edges_s) - 1, num_resources))
    for column in range(num_resources):
        slope, offset = (
            np.bincount(cell, weights, minlength=shape[0] * shape[1]).reshape(shape)[:, :-1]
            for weights in (change[:, column], change[:, column] * time)
        )
        integral = np.cumsum(slope, axis=1) * (edges_s - edges_s[0]) - np.cumsum(offset, axis=1)
        used[:, :, column] = np.diff(integral, axis=1)
    seconds = np.diff(edges_s)[:, None]
    ratio: Floats = (used / np.where(seconds > 0, seconds, 1.0)).clip(0.0)
    return ratio


def _row_names(nodes: Sequence[str], first: Sequence[int], size: int) -> tuple[str, ...]:
    if size == 1:
        return tuple(nodes)
    last = [min(i + size, len(nodes)) - 1 for i in first]
    return tuple(
        nodes[i] if i == j else f"{nodes[i]} to {nodes[j]}"
        for i, j in zip(first, last, strict=True)
    )
