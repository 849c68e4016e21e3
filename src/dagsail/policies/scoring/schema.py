"""The feature schema: the name, unit, range and source of every number that a policy weighs.

One list for each kind of question: how urgent is a task, how good is a node for it, is it better to
wait; and two that describe the surroundings, the node itself and the whole cluster. The kernels of
`features` and `context` fill arrays in this order. Any change of names, order or meaning is
a new version, and what was tuned or trained for another version is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Feature:
    """One number that a policy weighs.

    Attributes:
        name: unique in its list.
        unit: of the quantity before it is scaled; `log s` is log(1 + seconds) over log(1 + 1 day).
        low, high: range of the scaled value.
        source: what it is computed from.
    """

    name: str
    unit: str
    low: float
    high: float
    source: str


TASK: Final = (
    Feature("remaining", "log s", 0, 2, "expected work left in the workflow, over all workers"),
    Feature("path_share", "ratio", 0, 2, "upward rank over the work left: near 1 in a chain"),
    Feature("age", "log s", 0, 2, "since the workflow was submitted"),
    Feature("waiting", "log s", 0, 2, "since the task became ready"),
    Feature("slack", "ratio", -1 / 3, 1, "slack over upward rank, a third of it; 1: no deadline"),
    Feature("start_slack", "ratio", -1, 1, "time to the start deadline over 5 minutes; 1: none"),
    Feature("tasks_left", "ratio", 0, 1, "unfinished tasks of the workflow over all of them"),
    Feature("slowdown", "log ratio", -1, 1, "age and path ahead over the shortest possible time"),
    Feature("typical", "log ratio", 0, 1, "expected run time against the P99 of its kind, 7 days"),
    Feature("deviation", "log ratio", -1, 1, "real over expected run time of its kind, mean"),
    Feature("upward", "log s", 0, 2, "upward rank: longest expected path from here to the end"),
    Feature("own", "log s", 0, 2, "expected run time, mean over the nodes that it may use"),
    Feature("priority", "ratio", 0, 1, "0 for P0, 1 for P3"),
    Feature("gpu", "flag", 0, 1, "whether it asks for a GPU or a share of one"),
    Feature("share", "log ratio", 0, 1, "largest share of the cluster that its workers take"),
    Feature("children", "log count", 0, 3, "tasks that wait for this one"),
    Feature("work", "log s", 0, 2, "expected run time over all workers"),
    Feature("critical", "flag", 0, 1, "marked as critical by its author"),
    Feature("io", "ratio", 0, 1, "demand on the disk"),
    Feature("memory_bandwidth", "ratio", 0, 1, "demand on memory bandwidth"),
    Feature("workers", "log count", 0, 2, "workers beyond the first"),
)
"""How urgent a task is; the first `NUM_CHANGING` change while it waits."""
NUM_CHANGING: Final = 10

PAIR: Final = (
    Feature("slower_now", "log ratio", 0, 3, "time to finish over that on the best free node"),
    Feature("slower_ever", "log ratio", 0, 3, "run time over that on the fastest allowed node"),
    Feature("alignment", "ratio", 0, 1, "dot product of request and free room, as in Tetris"),
    Feature("used", "ratio", 0, 1, "share of the requested resources in use with the task"),
    Feature("gpu_waste", "flag", 0, 1, "a GPU node for a task without GPU"),
    Feature("free_gpu_waste", "ratio", 0, 1, "share of its GPUs that are free then"),
    Feature("fragmentation", "ratio", -1, 1, "growth of what typical tasks cannot use, as in FGD"),
    Feature("cost", "log ratio", 0, 1, "cost over that on the cheapest allowed node"),
    Feature("spot", "flag", 0, 1, "the node may be reclaimed"),
    Feature("local", "ratio", 0, 1, "share of the inputs that lie on the node"),
    Feature("delay_share", "ratio", 0, 2, "seconds lost to the best free node over upward rank"),
    Feature("in_the_way", "flag", 0, 1, "it would still run when a task that waits could start"),
    Feature("deviation", "log ratio", -1, 1, "real over expected run time of its kind here, mean"),
    Feature("preference", "ratio", -1, 1, "preferred placement terms met, less taints disliked"),
)
"""How good a node with room is for a task."""

WAIT: Final = (
    Feature("constant", "flag", 1, 1, "always 1: the threshold"),
    Feature("gain", "log ratio", -3, 3, "time to finish now over that if it waits"),
    Feature("gain_share", "ratio", -2, 2, "seconds gained over upward rank"),
    Feature("pressure", "log count", 0, 3, "ready tasks a node"),
    Feature("waited", "ratio", 0, 3, "time that the task is ready over its run time"),
    Feature("claims", "log count", 0, 3, "tasks that already wait for the node"),
    Feature("saving", "log ratio", -3, 3, "cost now over that if it waits"),
    Feature("frees_gpu", "flag", 0, 1, "a GPU node stays free that it does not need"),
)
"""Whether to wait for a busy node although there is a free one."""

NODE: Final = (
    Feature("cpu_use", "ratio", 0, 1, "share of the cpu in use"),
    Feature("memory_use", "ratio", 0, 1, "share of the memory in use"),
    Feature("gpu_use", "ratio", 0, 1, "share of the GPUs in use; 0 without GPUs"),
    Feature("cpu_recent", "ratio", 0, 1, "mean of cpu_use over 5 minutes"),
    Feature("gpu_recent", "ratio", 0, 1, "mean of gpu_use over 5 minutes"),
    Feature("running", "log count", 0, 3, "workers on it"),
    Feature("price", "log ratio", -1, 1, "price over the cluster's mean price"),
    Feature("spot", "flag", 0, 1, "may be reclaimed"),
    Feature("gpu_pool", "flag", 0, 1, "of the pool `gpu`"),
    Feature("mixed_pool", "flag", 0, 1, "of the pool `mixed`"),
    Feature("zone_share", "ratio", 0, 1, "nodes of its zone over all nodes"),
    Feature("failures", "ratio", 0, 1, "share of the latest attempts that failed"),
    Feature("disk", "ratio", 0, 1, "demand over what the disk gives, a third of it"),
    Feature("net_in", "ratio", 0, 1, "use of the network card, inwards"),
    Feature("net_out", "ratio", 0, 1, "use of the network card, outwards"),
    Feature("net_balance", "ratio", 0, 1, "in over in and out; one half when idle"),
    Feature("latency", "log ratio", 0, 1, "P99 to other nodes over 0.1 ms; 0: not measured"),
    Feature("pcie", "ratio", 0, 1, "use of PCIe; 0: not measured"),
    Feature("gpu_memory", "ratio", 0, 1, "of one GPU, over 80 GiB; 0: none or unknown"),
    Feature("next_leaver", "log s", 0, 2, "until the first of its workers is expected to end"),
)
"""What a node is like, whatever the task."""

GLOBAL: Final = (
    Feature("cpu_use", "ratio", 0, 1, "share of all cpu in use"),
    Feature("memory_use", "ratio", 0, 1, "share of all memory in use"),
    Feature("gpu_use", "ratio", 0, 1, "share of all GPUs in use"),
    Feature("gpu_recent", "ratio", 0, 1, "mean of gpu_use over 5 minutes"),
    Feature("ready_p0", "log ratio", 0, 1, "ready tasks of P0 a node"),
    Feature("ready_p1", "log ratio", 0, 1, "ready tasks of P1 a node"),
    Feature("ready_p2", "log ratio", 0, 1, "ready tasks of P2 a node"),
    Feature("ready_p3", "log ratio", 0, 1, "ready tasks of P3 a node"),
    Feature("ready_gpu", "ratio", 0, 1, "share of the ready tasks that ask for a GPU"),
    Feature("running", "log ratio", 0, 1, "tasks that hold nodes, a node"),
    Feature("critical_path", "log s", 0, 2, "longest upward rank of ready and running tasks"),
    Feature("depth", "log count", 0, 1, "mean number of steps to the end of the ready tasks"),
    Feature("nodes_up", "ratio", 0, 1, "share of the nodes that are up"),
    Feature("price_spread", "log ratio", 0, 1, "price of the dearest node over the mean price"),
)
"""What the whole cluster is like."""

NUM_TASK: Final = len(TASK)
NUM_PAIR: Final = len(PAIR)
NUM_WAIT: Final = len(WAIT)
NUM_NODE: Final = len(NODE)
NUM_GLOBAL: Final = len(GLOBAL)
