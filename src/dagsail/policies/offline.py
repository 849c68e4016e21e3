"""Static benchmarks: plan one workflow on an empty cluster, and run such a plan to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import InputError, UnknownNameError
from dagsail.domain.scenario import Scenario
from dagsail.domain.snapshot import PENDING, READY, Snapshot
from dagsail.domain.workflow import Arrival, Workflow
from dagsail.kernels import kernel
from dagsail.policies import planning
from dagsail.policies.rule import Rule, make_memory
from dagsail.scheduling import arbiter
from dagsail.scheduling.assemble import assemble
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import CUSTOM, Memory

METHODS: Final = {
    "heft": planning.HEFT,
    "cpop": planning.CPOP,
    "peft": planning.PEFT,
    "lookahead-heft": planning.LOOKAHEAD,
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A static plan: where and when each task of a workflow runs, in the order of its tasks.

    Attributes:
        nodes: position of the node of each task. int64 (T,)
        starts_s, ends_s: planned times. float64 (T,)
    """

    nodes: NDArray[np.int64]
    starts_s: NDArray[np.float64]
    ends_s: NDArray[np.float64]

    @property
    def makespan_s(self) -> float:
        """End of the last task."""
        return float(self.ends_s.max())


def plan_offline(workflow: Workflow, cluster: Cluster, method: str = "heft") -> Schedule:
    """Plan a workflow as the papers do: known costs, empty cluster, data sent as parents end.

    Raises:
        UnknownNameError: if `method` is none of `METHODS`.
        InfeasibleError: if a task fits on no node.
    """
    snapshot, _ = assemble([Arrival(0.0, workflow)], cluster, Scenario())
    return plan_assembled(snapshot, method)


def plan_assembled(snapshot: Snapshot, method: str = "heft") -> Schedule:
    """Likewise, for a snapshot that holds one workflow, nothing of which has started."""
    if method not in METHODS:
        raise UnknownNameError(f"unknown planner '{method}'; there are {', '.join(METHODS)}")
    snapshot.status["num_arrived"] = 1
    snapshot.tasks["state"] = np.where(snapshot.tasks["parents_left"] == 0, READY, PENDING)
    memory = planning.prepare(snapshot, 0)
    planning.plan(snapshot, memory, METHODS[method], True, False)
    count = len(snapshot.tasks)
    return Schedule(
        memory.ints[planning.HEADER :].copy(),
        memory.floats[:count].copy(),
        memory.floats[count:].copy(),
    )


@kernel
def _follow(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Place every node's next task when it is ready and fits; `memory.ints` as in `follow`."""
    num_nodes = snapshot.nodes.shape[0]
    header = 2 * num_nodes + 1
    placed = 0
    for node in range(num_nodes):
        while placed < limit and memory.ints[node] < memory.ints[num_nodes + node + 1]:
            task = memory.ints[header + memory.ints[node]]
            if snapshot.tasks[task].state != READY:
                break
            if legality.verdict(snapshot, task, node) != legality.LEGAL:
                break
            if not arbiter.place_group(snapshot, task, node):
                break
            memory.ints[node] += 1
            placed += 1
    return placed


def _decide(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Follow the plan."""
    return _follow(snapshot, memory, limit)


def follow(nodes: Sequence[int], starts_s: Sequence[float], name: str = "fixed-plan") -> Rule:
    """A policy that runs a plan to the letter: fixed node, fixed order on each node.

    Data is sent to a child's node as soon as its parent ends. The plan covers all tasks of the
    run, in the order of the run's tasks.

    Args:
        nodes: position of the node of each task.
        starts_s: planned starts; they set the order on each node, not the times.
        name: of the policy.
    """
    node_of = np.asarray(nodes, np.int64)
    starts = np.asarray(starts_s, np.float64)

    def prepare(snapshot: Snapshot, seed: int) -> Memory:
        """`ints`: next place of each node, bounds of the nodes' orders, then the orders."""
        if len(node_of) != len(snapshot.tasks) or len(starts) != len(node_of):
            raise InputError(
                f"the plan covers {len(node_of)} tasks, the run has {len(snapshot.tasks)}"
            )
        num_nodes = len(snapshot.nodes)
        snapshot.tasks["planned_node"] = node_of
        depth = -snapshot.tasks["hops_to_exit"]
        order = np.lexsort((np.arange(len(starts)), depth, starts, node_of))
        bounds = np.searchsorted(node_of[order], np.arange(num_nodes + 1))
        memory = make_memory(seed, 1, 2 * num_nodes + 1 + len(order))
        memory.ints[:num_nodes] = bounds[:-1]
        memory.ints[num_nodes : 2 * num_nodes + 1] = bounds
        memory.ints[2 * num_nodes + 1 :] = order
        return memory

    return Rule(name, loop=CUSTOM, decide_function=_decide, prepare_function=prepare)
