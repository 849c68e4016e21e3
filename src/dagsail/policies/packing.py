"""Measures of how well a request fills a node."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import queue


@kernel
def alignment(snapshot: Snapshot, shape: int, node: int) -> float:
    """Dot product of request and free room, both as shares of the node, over its resources."""
    total = 0.0
    count = 0
    for resource in range(snapshot.node_free.shape[1]):
        allocatable = snapshot.node_allocatable[node, resource]
        if allocatable > 0:
            count += 1
            total += (
                snapshot.shape_request[shape, resource]
                / allocatable
                * (snapshot.node_free[node, resource] / allocatable)
            )
    return total / count


@kernel
def queue_by_remaining_work(snapshot: Snapshot) -> None:
    """Queue incoming tasks and order every queue by the work left in the task's workflow."""
    status = snapshot.status[0]
    queue.take_in(snapshot)
    for index in range(status.num_active):
        row = snapshot.shapes[snapshot.active[index]]
        for position in range(row.queue_size):
            task = snapshot.tasks[snapshot.queue[row.queue_start + position]]
            task.key = snapshot.workflows[task.workflow].remaining_s
    queue.reorder(snapshot)


@kernel
def unusable(snapshot: Snapshot, shape: int, node: int, taken_shape: int) -> float:
    """Free share of a node's scarce resource that one more task of `shape` could not use.

    The scarce resource is the GPU where the node has any, else the cpu. Whatever the shape cannot
    use because another resource is short counts as unusable in full.

    Args:
        snapshot: of the instant.
        shape: the typical task.
        node: the node.
        taken_shape: shape whose request is first taken off the free amounts; -1 for none.
    """
    scarce = 0
    for resource in range(2, snapshot.node_free.shape[1]):
        if snapshot.node_allocatable[node, resource] > 0:
            scarce = resource
    if snapshot.nodes[node].num_gpus == 0:
        scarce = 0
    fits = 1
    left = 0
    for resource in range(snapshot.node_free.shape[1]):
        free = snapshot.node_free[node, resource]
        if taken_shape >= 0:
            free -= snapshot.shape_request[taken_shape, resource]
        if resource == scarce:
            left = free
        if snapshot.shape_request[shape, resource] > free:
            fits = 0
    wanted = snapshot.shape_request[shape, scarce]
    share = left / max(snapshot.node_allocatable[node, scarce], 1)
    if fits == 0 or wanted == 0:
        return share if scarce > 0 or fits == 0 else 0.0
    return (left % wanted) / max(snapshot.node_allocatable[node, scarce], 1)
