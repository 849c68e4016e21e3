"""Snapshot: everything that a decision may see at one instant, as arrays.

The simulator, the service and the Kubernetes adapter build the same arrays; policies and
constraints are kernels over them. `Names` beside a snapshot turns positions back into names.

A snapshot never holds a true runtime (only estimates) nor anything about workflows that have not
arrived (their rows exist in a simulation, in state `ABSENT`, and are not to be read).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.structs import Struct, array

# Integers are 64 bits wide throughout: kernels are then compiled for one integer type only.

# States of a task.
ABSENT: Final = 0  # its workflow has not arrived
PENDING: Final = 1  # waits for parents
READY: Final = 2  # may be placed
BOUND: Final = 3  # placed: starting, staging data or running
FINISHED: Final = 4
FAILED: Final = 5
CANCELLED: Final = 6

# States of a node.
NODE_UP: Final = 0
NODE_CLOSING: Final = 1  # takes no new task; about to be reclaimed or drained
NODE_DOWN: Final = 2

TASK: Final = np.dtype(
    [
        ("workflow", "i8"),
        ("shape", "i8"),  # row of `shapes`: equal requests and placement rules
        ("runtime_row", "i8"),  # row of `runtime_factor`
        ("kind", "i8"),  # row of `histories`
        ("priority", "i8"),  # 0 (most urgent) .. 3
        ("num_workers", "i8"),
        ("worker_start", "i8"),  # first row of `workers`
        ("image", "i8"),  # column of `node_images`, -1 = none
        ("state", "i8"),
        ("parents_left", "i8"),
        ("attempt", "i8"),
        ("node", "i8"),  # where it runs or ran (first worker), -1 = nowhere yet
        ("planned_node", "i8"),  # data is sent ahead to it; -1 = no plan
        ("hops_to_exit", "i8"),
        ("is_critical", "i8"),
        ("boost", "i8"),  # 0 normal, -1 starving: goes first
        ("queue_position", "i8"),  # in `queue`, -1 = not queued
        ("bound_position", "i8"),  # in `bound`, -1 = not bound
        ("num_reserved", "i8"),  # nodes that are reserved for it
        ("child_start", "i8"),
        ("child_end", "i8"),
        ("parent_start", "i8"),
        ("parent_end", "i8"),
        ("sequence", "i8"),  # order of becoming ready; breaks ties
        ("estimate_s", "f8"),  # expected runtime on the reference node
        ("mean_s", "f8"),  # expected runtime averaged over the nodes that it may use
        ("spread", "f8"),  # standard deviation of the runtime over its mean
        ("upward_rank_s", "f8"),
        ("downward_rank_s", "f8"),
        ("comm_bytes", "f8"),
        ("input_bytes", "f8"),
        ("output_bytes", "f8"),
        ("io_demand", "f8"),
        ("memory_bandwidth_demand", "f8"),
        ("start_deadline_s", "f8"),  # absolute; inf = none
        ("deadline_s", "f8"),  # absolute; inf = none
        ("ready_s", "f8"),
        ("start_s", "f8"),
        ("end_s", "f8"),  # expected end while bound, real end when finished
        ("key", "f8"),  # position in the queue: smaller goes first
    ],
    align=True,
)
WORKFLOW: Final = np.dtype(
    [
        ("tenant", "i8"),
        ("family", "i8"),  # row of `histories`
        ("priority", "i8"),
        ("first_task", "i8"),
        ("num_tasks", "i8"),
        ("tasks_left", "i8"),
        ("state", "i8"),
        ("arrival_s", "f8"),
        ("deadline_s", "f8"),  # absolute; inf = none
        ("start_deadline_s", "f8"),  # absolute; inf = none
        ("remaining_s", "f8"),  # sum of `mean_s` times workers over unfinished tasks
        ("critical_path_s", "f8"),  # on the fastest nodes, without transfers
        ("finish_s", "f8"),
        ("first_start_s", "f8"),
    ],
    align=True,
)
NODE: Final = np.dtype(
    [
        ("type", "i8"),
        ("zone", "i8"),
        ("rack", "i8"),
        ("state", "i8"),
        ("num_running", "i8"),
        ("version", "i8"),  # counts changes of what is free
        ("num_gpus", "i8"),
        ("is_spot", "i8"),
        ("has_local_ssd", "i8"),
        ("reserved_for", "i8"),  # starving task that alone may start here, -1 = none
        ("price_usd_per_h", "f8"),
        ("nic_bytes_per_s", "f8"),
        ("gpu_link_bytes_per_s", "f8"),
        ("cpu_default", "i8"),  # requested cpu, 100m counted where a task asks for none
        ("memory_default", "i8"),  # requested memory, 200 MiB counted where a task asks for none
        ("pool", "i8"),  # position in `cluster.POOLS`
        ("gpu_column", "i8"),  # resource that counts its GPUs, -1 = has none
        ("gpu_memory_bytes", "f8"),  # of one GPU, 0 = unknown
        # What is measured; 0 where nothing measures it.
        ("disk_pressure", "f8"),  # demand over what the disk gives
        ("net_in_ratio", "f8"),  # use of the network card
        ("net_out_ratio", "f8"),
        ("pcie_ratio", "f8"),
        ("latency_p99_s", "f8"),
        # Experience: see `scheduling.experience`.
        ("starts", "f8"),
        ("failures", "f8"),
        ("cpu_use", "f8"),
        ("gpu_use", "f8"),
        ("used_s", "f8"),  # when the two were brought up to date
    ],
    align=True,
)
HISTORY: Final = np.dtype(
    [
        ("count", "i8"),
        ("p95_s", "f8"),  # of the last 7 days
        ("p99_s", "f8"),
    ],
    align=True,
)
RATIO: Final = np.dtype([("weight", "f8"), ("total", "f8")], align=True)
NUM_BINS: Final = 64

SHAPE: Final = np.dtype(
    [
        ("queue_start", "i8"),
        ("queue_size", "i8"),
        ("active_position", "i8"),  # in `active`, -1 = no task of this shape is queued
        ("blocked", "i8"),  # 1: known to fit on no node until something is released
        ("skipped", "i8"),  # stamp of the decision that gave up on it
        ("num_workers", "i8"),
        ("tenant", "i8"),  # row of `tenant_used`; -1 where no quota applies
        ("grown", "i8"),  # shape after an OOM kill, -1 = cannot grow
        ("near_parents", "i8"),
        ("wants_local_ssd", "i8"),
        ("is_virtual", "i8"),  # asks for nothing: a barrier, not a container
        ("num_tasks", "i8"),  # popularity: tasks of this shape in the workload known so far
        ("gpu_milli", "i8"),  # per worker; below 1000 it must fit into one device
        ("cpu_default", "i8"),
        ("memory_default", "i8"),
    ],
    align=True,
)
SHAPE_NODE: Final = np.dtype(
    [
        ("eligible", "i8"),  # every rule that does not change with load admits the pair
        ("preference", "i8"),  # sum of weights of matching preferred terms
        ("untolerated", "i8"),  # PreferNoSchedule taints that the shape does not tolerate
    ],
    align=True,
)
EDGE: Final = np.dtype(
    [
        ("task", "i8"),
        ("twin", "i8"),  # row of the same edge in the other list
        ("data_bytes", "f8"),
    ],
    align=True,
)
WORKER: Final = np.dtype([("task", "i8"), ("node", "i8"), ("devices", "i8")], align=True)
LINK: Final = np.dtype([("latency_s", "f8"), ("bytes_per_s", "f8")], align=True)
STATUS: Final = np.dtype(
    [
        ("num_active", "i8"),  # shapes with queued tasks
        ("num_ready", "i8"),  # queued tasks plus incoming ones
        ("num_incoming", "i8"),
        ("num_placed", "i8"),  # placements of the present decision
        ("num_bound", "i8"),
        ("num_deferred", "i8"),
        ("stamp", "i8"),  # number of the present decision
        ("has_waiting", "i8"),  # tasks wait although they may fit: ask again at the next event
        ("changed", "i8"),  # something happened that a decision may use
        ("num_arrived", "i8"),
        ("nodes_version", "i8"),  # counts nodes lost and returned
        ("finished_version", "i8"),  # counts finished tasks
        ("sequence", "i8"),
        ("now_s", "f8"),
        ("wake_s", "f8"),  # a policy asks to be called again at this time; inf = no
        ("startup_s", "f8"),  # expected container start
        ("registry_bytes_per_s", "f8"),  # 0: images need no pull
    ],
    align=True,
)

Records = Any
"""A numpy record array; kernels read its fields as attributes."""


class Snapshot(Struct):
    """Arrays of one instant. Shapes: T tasks, W workflows, N nodes, R resources, S shapes."""

    status: Records = array(STATUS)  # (1,)
    tasks: Records = array(TASK)  # (T,)
    workflows: Records = array(WORKFLOW)  # (W,)
    nodes: Records = array(NODE)  # (N,)
    shapes: Records = array(SHAPE)  # (S,)
    shape_node: Records = array(SHAPE_NODE, 2)  # (S, N)
    workers: Records = array(WORKER)  # (sum of num_workers,)
    children: Records = array(EDGE)  # (E,)
    parents: Records = array(EDGE)  # (E,)
    links: Records = array(LINK)  # (4,): same node, same rack, same zone, cross zone
    node_free: NDArray[np.int64] = array(np.int64, 2)  # (N, R)
    node_allocatable: NDArray[np.int64] = array(np.int64, 2)  # (N, R)
    node_devices: NDArray[np.int64] = array(np.int64, 2)
    """(N, D): free thousandths of each shareable GPU."""
    shape_request: NDArray[np.int64] = array(np.int64, 2)  # (S, R): per worker
    runtime_factor: NDArray[np.float64] = array(np.float64, 2)
    """(F, node types): runtime over `estimate_s`."""
    queue: NDArray[np.int64] = array(np.int64)
    """Binary heaps of ready tasks, one segment a shape."""
    active: NDArray[np.int64] = array(np.int64)  # (S,): shapes with queued tasks
    incoming: NDArray[np.int64] = array(np.int64)
    """(T,): tasks that became ready and are not queued yet."""
    bound: NDArray[np.int64] = array(np.int64)
    """(T,): tasks that hold nodes, in no order."""
    deferred: NDArray[np.int64] = array(np.int64)
    """(T,): tasks that a policy lets wait, set aside until this instant's decision is over."""
    placed: NDArray[np.int64] = array(np.int64)
    """(T,): tasks that the present decision placed."""
    node_images: NDArray[np.uint8] = array(np.uint8, 2)
    """(N, I): 1 where the node has the image."""
    image_bytes: NDArray[np.float64] = array(np.float64)  # (I,)
    histories: Records = array(HISTORY)
    """(H,): durations of each kind of task, then of each family of workflows."""
    days: NDArray[np.int64] = array(np.int64, 2)
    """(H, 7 (NUM_BINS + 1)): ring of the last days; counts by size, then which day it is."""
    ratios: Records = array(RATIO, 2)
    """(H, node types): log of real over expected run time."""
    tenant_used: NDArray[np.int64] = array(np.int64, 2)  # (tenants, R)
    tenant_limit: NDArray[np.int64] = array(np.int64, 2)  # (tenants, R)


@dataclass(frozen=True, slots=True)
class Names:
    """What the positions of a snapshot are called outside."""

    resources: tuple[str, ...]
    nodes: tuple[str, ...]
    workflows: tuple[str, ...]
    tasks: tuple[str, ...]
    tenants: tuple[str, ...]
