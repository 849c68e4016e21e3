"""The simulator's own truth, which no policy sees: true runtimes, timers, flows, the log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.cluster import Cluster
from dagsail.domain.scenario import Scenario
from dagsail.domain.snapshot import Records, Snapshot
from dagsail.domain.workflow import Arrival
from dagsail.structs import Struct, array

# Phases of a bound task.
IDLE: Final = 0
STARTING: Final = 1
STAGING: Final = 2
RUNNING: Final = 3
ARRIVING: Final = 4  # not bound yet: data sent ahead is under way

# Why a running attempt will not finish.
NO_FAULT: Final = 0
CRASH: Final = 1
OOM: Final = 2
TIMEOUT: Final = 3

# Outcomes of an attempt, in the order of `OUTCOMES`.
FINISHED: Final = 0
FAILED: Final = 1
EVICTED: Final = 2
CANCELLED: Final = 3
OUTCOMES: Final = ("finished", "failed", "evicted", "cancelled")

RUN: Final = np.dtype(
    [
        ("phase", "i8"),
        ("fault", "i8"),
        ("flows_left", "i8"),
        ("retries_left", "i8"),
        ("refused_room", "i8"),  # 1: the policy did not take a node that was cleared for it
        ("work_left_s", "f8"),  # at full rate on its node
        ("rate", "f8"),
        ("updated_s", "f8"),
        ("timeout_s", "f8"),
        ("limit_s", "f8"),  # when the running attempt times out
        ("data_ready_s", "f8"),  # when the last data sent ahead arrives
    ],
    align=True,
)
SLOT: Final = np.dtype([("task", "i8"), ("next", "i8"), ("previous", "i8")], align=True)
MACHINE: Final = np.dtype(
    [
        ("first_slot", "i8"),
        ("is_lost", "i8"),
        ("is_absent", "i8"),
        ("losses", "i8"),
        ("reclaims", "i8"),
        ("memory_pressure", "f8"),
        ("disk_pressure", "f8"),
        ("disk_speed", "f8"),
    ],
    align=True,
)
CHANGE: Final = np.dtype([("node", "i8"), ("is_join", "i8"), ("time_s", "f8")], align=True)
FLOW: Final = np.dtype(
    [
        ("task", "i8"),
        ("source", "i8"),
        ("target", "i8"),
        ("active_position", "i8"),  # in `active_flows`, -1 = idle or in its latency phase
        ("bytes_left", "f8"),
        ("rate", "f8"),
        ("cap", "f8"),
    ],
    align=True,
)
TIMER: Final = np.dtype([("time_s", "f8"), ("position", "i8")], align=True)
ATTEMPT: Final = np.dtype(
    [
        ("task", "i8"),
        ("attempt", "i8"),
        ("node", "i8"),
        ("shape", "i8"),
        ("outcome", "i8"),
        ("worker_start", "i8"),  # in `attempt_workers`, for tasks of several workers
        ("ready_s", "f8"),
        ("start_s", "f8"),
        ("end_s", "f8"),
    ],
    align=True,
)
LAYOUT: Final = np.dtype(
    [
        (name, "i8")
        for name in (
            "flows",
            "network",
            "nodes",
            "spots",
            "changes",
            "foreign",
            "disk",
            "arrival",
            "wake",
            "count",
        )
    ]
)
"""First timer of each group. Timers of tasks come first; equal times go off in this order."""
LAW: Final = np.dtype(
    [
        ("seed", "i8"),
        ("num_timers", "i8"),
        ("num_attempts", "i8"),
        ("num_attempt_workers", "i8"),
        ("num_active_flows", "i8"),
        ("tasks_left", "i8"),
        ("foreign_ticks", "i8"),
        ("disk_ticks", "i8"),
        ("fair_sharing", "i8"),
        ("stage_in", "i8"),
        ("interferes", "i8"),
        ("preempts", "i8"),
        ("ages", "i8"),
        ("num_decisions", "i8"),
        ("num_instants", "i8"),
        ("num_evictions", "i8"),
        ("evictions_at_progress", "i8"),
        ("in_instant", "i8"),  # 1: not all timers of the present instant have been handled
        ("last_progress_s", "f8"),
        ("patience_s", "f8"),  # without progress for longer, a run counts as stuck
        ("flows_updated_s", "f8"),
        ("noise", "f8"),
        ("straggler_ratio", "f8"),
        ("straggler_factor", "f8"),
        ("heavy_tail_ratio", "f8"),
        ("heavy_tail_alpha", "f8"),
        ("latency_jitter", "f8"),
        ("bandwidth_jitter", "f8"),
        ("memory_interference", "f8"),
        ("disk_interference", "f8"),
        ("disk_drift", "f8"),
        ("disk_interval_s", "f8"),
        ("node_mtbf_s", "f8"),
        ("node_mttr_s", "f8"),
        ("spot_mtbf_s", "f8"),
        ("spot_notice_s", "f8"),
        ("task_failure_ratio", "f8"),
        ("oom_ratio", "f8"),
        ("foreign_mean", "f8"),
        ("foreign_tide", "f8"),
        ("foreign_noise", "f8"),
        ("foreign_interval_s", "f8"),
    ],
    align=True,
)


_PATIENCE_S: Final = 30 * 86400.0
_PATIENCE_RUNS: Final = 20.0
"""A run is stuck when nothing ended for 30 days and 20 times the longest expected runtime."""


class World(Struct):
    """Arrays of the hidden state; T tasks, N nodes, E edges, M timers."""

    law: Records = array(LAW)  # (1,): switches, strengths and counters
    layout: Records = array(LAYOUT)  # (1,)
    runs: Records = array(RUN)  # (T,)
    slots: Records = array(SLOT)  # (workers,): doubly linked lists of the workers on each node
    machines: Records = array(MACHINE)  # (N,)
    changes: Records = array(CHANGE)  # (C,)
    flows: Records = array(FLOW)  # (E,) with fair sharing, else (0,)
    active_flows: NDArray[np.int64] = array(np.int64)
    link_left: NDArray[np.float64] = array(np.float64, 2)
    """(2, N): capacity of each card, out and in, while rates are shared out."""
    link_flows: NDArray[np.int64] = array(np.int64, 2)
    """(2, N): flows on each card that have no rate yet."""
    sent_to: NDArray[np.int64] = array(np.int64)
    """(E,): node to which the data of an edge was sent ahead, -1 = none."""
    image_ready_s: NDArray[np.float64] = array(np.float64, 2)
    """(N, I): when a node has finished pulling an image."""
    foreign: NDArray[np.int64] = array(np.int64, 2)  # (N, R): held by foreign load
    timers: Records = array(TIMER)  # (M,)
    timer_heap: NDArray[np.int64] = array(np.int64)  # (M,)
    attempts: Records = array(ATTEMPT)  # grows
    attempt_workers: NDArray[np.int64] = array(np.int64)
    """Nodes of the workers of multi-worker attempts; grows."""
    max_wait_s: NDArray[np.float64] = array(np.float64)  # (4,): ageing bound by priority


def _layout(num_tasks: int, num_flows: int, num_nodes: int, num_changes: int) -> Any:
    sizes = [num_tasks, num_flows, 1, num_nodes, num_nodes, num_changes, 1, 1, 1, 1]
    return np.array([tuple(np.cumsum(sizes))], LAYOUT)


def make_world(
    arrivals: Sequence[Arrival],
    cluster: Cluster,
    scenario: Scenario,
    snapshot: Snapshot,
    seed: int,
) -> World:
    """The truth of a run at time 0, before any timer is set."""
    num_tasks, num_nodes = len(snapshot.tasks), len(snapshot.nodes)
    num_flows = len(snapshot.parents) if scenario.transfers.fair_sharing else 0
    changes = _changes(cluster, scenario)
    layout = _layout(num_tasks, num_flows, num_nodes, len(changes))
    runs = np.zeros(num_tasks, RUN)
    tasks = [task for arrival in arrivals for task in arrival.workflow.tasks]
    default = scenario.faults.max_retries
    can_fail = scenario.faults.task_failure_ratio > 0 or scenario.faults.oom_ratio > 0
    runs["retries_left"] = [task.max_retries or (default if can_fail else 0) for task in tasks]
    runs["timeout_s"] = [math.inf if t.timeout_s is None else t.timeout_s for t in tasks]
    slots = np.full(len(snapshot.workers), -1, SLOT)
    slots["task"] = np.repeat(np.arange(num_tasks), snapshot.tasks["num_workers"])
    machines = np.zeros(num_nodes, MACHINE)
    machines["first_slot"] = -1
    machines["disk_speed"] = 1.0
    flows = np.zeros(num_flows, FLOW)
    flows["active_position"] = -1
    timers = np.zeros(layout[0]["count"], TIMER)
    timers["position"] = -1
    return World(
        law=_law(scenario, seed, snapshot),
        layout=layout,
        runs=runs,
        slots=slots,
        machines=machines,
        changes=changes,
        flows=flows,
        active_flows=np.zeros(num_flows, np.int64),
        link_left=np.zeros((2, num_nodes)),
        link_flows=np.zeros((2, num_nodes), np.int64),
        sent_to=np.full(len(snapshot.parents), -1, np.int64),
        image_ready_s=np.zeros(snapshot.node_images.shape),
        foreign=np.zeros_like(snapshot.node_free),
        timers=timers,
        timer_heap=np.zeros(layout[0]["count"], np.int64),
        attempts=np.zeros(num_tasks + 64, ATTEMPT),
        attempt_workers=np.zeros(len(snapshot.workers) + 64, np.int64),
        max_wait_s=np.array(
            [scenario.fairness.max_wait_s.get(f"P{p}", math.inf) for p in range(4)]
        ),
    )


def _law(scenario: Scenario, seed: int, snapshot: Snapshot) -> Any:
    law = np.zeros(1, LAW)
    runtimes, transfers, faults = scenario.runtimes, scenario.transfers, scenario.faults
    interference, foreign = scenario.interference, scenario.foreign_load
    values = {
        "seed": seed,
        "tasks_left": len(snapshot.tasks),
        "patience_s": _PATIENCE_S + _PATIENCE_RUNS * float(snapshot.tasks["mean_s"].max()),
        "fair_sharing": transfers.fair_sharing,
        "stage_in": transfers.stage_in,
        "interferes": interference.memory_bandwidth > 0 or interference.disk > 0,
        "preempts": scenario.preemption.enabled,
        "ages": bool(scenario.fairness.max_wait_s),
        "noise": runtimes.noise,
        "straggler_ratio": runtimes.straggler_ratio,
        "straggler_factor": runtimes.straggler_factor,
        "heavy_tail_ratio": runtimes.heavy_tail_ratio,
        "heavy_tail_alpha": runtimes.heavy_tail_alpha,
        "latency_jitter": transfers.latency_jitter,
        "bandwidth_jitter": transfers.bandwidth_jitter,
        "memory_interference": interference.memory_bandwidth,
        "disk_interference": interference.disk,
        "disk_drift": interference.disk_drift,
        "disk_interval_s": interference.interval_s,
        "node_mtbf_s": faults.node_mtbf_s,
        "node_mttr_s": faults.node_mttr_s,
        "spot_mtbf_s": faults.spot_mtbf_s,
        "spot_notice_s": faults.spot_notice_s,
        "task_failure_ratio": faults.task_failure_ratio,
        "oom_ratio": faults.oom_ratio,
        "foreign_mean": foreign.mean_ratio,
        "foreign_tide": foreign.tide_ratio,
        "foreign_noise": foreign.noise_ratio,
        "foreign_interval_s": foreign.interval_s,
    }
    for name, value in values.items():
        law[name] = value
    return law


def _changes(cluster: Cluster, scenario: Scenario) -> Any:
    rows = []
    for change in scenario.node_changes:
        for position, node in enumerate(cluster.nodes):
            if node.type == change.node_type:
                if change.joins_s is not None:
                    rows.append((position, 1, change.joins_s))
                if change.leaves_s is not None:
                    rows.append((position, 0, change.leaves_s))
    return np.array(rows, CHANGE)
