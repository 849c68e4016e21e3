"""Soft constraints: how often a placement ignores what a task would have liked.

Four wishes are counted, each at most once a finished task, and only where the cluster could grant
it: the best-liked of the eligible nodes (`preferred`), the zone that holds most of the input
(`near_parents`), a local SSD (`wants_local_ssd`), and an even spread over the values of a label
(`spread_over`). A task of several workers is judged by its first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.cluster import HOSTNAME_LABEL, Node
from dagsail.domain.placement import Placement
from dagsail.domain.snapshot import FINISHED, Snapshot

Ints = NDArray[np.int64]


class Wishes(NamedTuple):
    """Of the wishes that could be granted, how many were and how many were not."""

    granted: int
    ignored: int


def violation_ratio(run: Run) -> float:
    """Share of the grantable wishes that were ignored; NaN if there was none."""
    done = np.flatnonzero(run.snapshot.tasks["state"] == FINISHED)
    wishes = [
        _preferred(run.snapshot, done),
        _local_ssd(run.snapshot, done),
        _near_parents(run.snapshot, done),
        *_spread(run, done),
    ]
    ignored = sum(wish.ignored for wish in wishes)
    count = ignored + sum(wish.granted for wish in wishes)
    return ignored / count if count else float("nan")


def _counted(wished: NDArray[np.bool_], ignored: NDArray[np.bool_]) -> Wishes:
    return Wishes(int((wished & ~ignored).sum()), int(ignored.sum()))


def _preferred(snapshot: Snapshot, done: Ints) -> Wishes:
    liking = np.where(snapshot.shape_node["eligible"] == 1, snapshot.shape_node["preference"], 0)
    best = liking.max(axis=1)
    shape, node = snapshot.tasks["shape"][done], snapshot.tasks["node"][done]
    wished = best[shape] > 0
    ignored = wished & (liking[shape, node] < best[shape])
    return _counted(wished, ignored)


def _local_ssd(snapshot: Snapshot, done: Ints) -> Wishes:
    has_ssd = snapshot.nodes["has_local_ssd"] == 1
    grantable = ((snapshot.shape_node["eligible"] == 1) & has_ssd).any(axis=1)
    shape, node = snapshot.tasks["shape"][done], snapshot.tasks["node"][done]
    wished = (snapshot.shapes["wants_local_ssd"][shape] == 1) & grantable[shape]
    return _counted(wished, wished & ~has_ssd[node])


def _near_parents(snapshot: Snapshot, done: Ints) -> Wishes:
    """Ignored where another zone, with a node that the task may use, held more of the input."""
    tasks, zone = snapshot.tasks, snapshot.nodes["zone"]
    near = snapshot.shapes["near_parents"][tasks["shape"][done]] == 1
    has_input = tasks["parent_end"][done] > tasks["parent_start"][done]
    wished = done[near & has_input]
    fan_in = tasks["parent_end"][wished] - tasks["parent_start"][wished]
    row = np.repeat(np.arange(len(wished)), fan_in)
    within = np.arange(len(row)) - np.repeat(np.cumsum(fan_in) - fan_in, fan_in)
    edges = snapshot.parents[np.repeat(tasks["parent_start"][wished], fan_in) + within]
    num_zones = int(zone.max()) + 1
    cell = row * num_zones + zone[tasks["node"][edges["task"]]]
    # The one byte more lets the number of parents decide where no data flows.
    held = np.bincount(cell, edges["data_bytes"] + 1.0, minlength=len(wished) * num_zones)
    held = held.reshape(-1, num_zones)
    reachable = np.zeros((len(snapshot.shapes), num_zones), bool)
    for number in range(num_zones):
        eligible = snapshot.shape_node["eligible"][:, zone == number] == 1
        reachable[:, number] = eligible.any(axis=1)
    most = np.where(reachable[tasks["shape"][wished]], held, 0.0).max(axis=1, initial=0.0)
    here = held[np.arange(len(wished)), zone[tasks["node"][wished]]]
    return _counted(np.ones(len(wished), bool), here < most)


def _spread(run: Run, done: Ints) -> Iterable[Wishes]:
    """Of tasks of one kind and workflow, those beyond an even share of a value are in excess."""
    shape = run.snapshot.tasks["shape"][done]
    shapes, example = np.unique(shape, return_index=True)
    label_of = {
        int(s): _placement(run, int(task)).spread_over
        for s, task in zip(shapes, done[example], strict=True)
    }
    for label in sorted({label for label in label_of.values() if label}):
        values = [_label(node, label) for node in run.cluster.nodes]
        value = np.array([sorted(set(values)).index(v) for v in values])
        spread_shapes = [s for s, name in label_of.items() if name == label]
        yield _excess(run.snapshot, done[np.isin(shape, spread_shapes)], value)


def _excess(snapshot: Snapshot, members: Ints, value: Ints) -> Wishes:
    tasks = snapshot.tasks[members]
    num_values = int(value.max()) + 1
    possible = np.array(
        [len(np.unique(value[row == 1])) for row in snapshot.shape_node["eligible"]]
    )
    key = tasks["workflow"] * (int(tasks["kind"].max()) + 1) + tasks["kind"]
    group = np.unique(key, return_inverse=True)[1].reshape(-1)
    cell = group * num_values + value[tasks["node"]]
    counts = np.bincount(cell, minlength=(int(group.max()) + 1) * num_values)
    counts = counts.reshape(-1, num_values)
    reach = np.ones(len(counts), np.int64)
    np.maximum.at(reach, group, possible[tasks["shape"]])
    even = -(-counts.sum(axis=1) // reach)
    excess = int((counts - even[:, None]).clip(0).sum())
    return Wishes(len(members) - excess, excess)


def _placement(run: Run, task: int) -> Placement:
    workflow = int(run.snapshot.tasks["workflow"][task])
    first = int(run.snapshot.workflows["first_task"][workflow])
    return run.arrivals[workflow].workflow.tasks[task - first].placement


def _label(node: Node, label: str) -> str:
    return node.labels.get(label, node.name if label == HOSTNAME_LABEL else "")
