"""The feature schema: the name, unit, range and source of every number that a policy weighs.

One list for each kind of question: how urgent is a task, how good is a node for it, is it better to
wait. The kernels of `features` fill arrays in this order. Any change of names, order or meaning is
a new version, and what was tuned or trained for another version is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VERSION: Final = 1


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
    Feature("upward", "log s", 0, 2, "upward rank: longest expected path from here to the end"),
    Feature("own", "log s", 0, 2, "expected run time, mean over the nodes that it may use"),
    Feature("path_share", "ratio", 0, 2, "upward rank over the work left: near 1 in a chain"),
    Feature("age", "log s", 0, 2, "since the workflow was submitted"),
    Feature("waiting", "log s", 0, 2, "since the task became ready"),
    Feature("slack", "ratio", -1 / 3, 1, "slack over upward rank, a third of it; 1: no deadline"),
    Feature("priority", "ratio", 0, 1, "0 for P0, 1 for P3"),
    Feature("gpu", "flag", 0, 1, "whether it asks for a GPU or a share of one"),
    Feature("share", "log ratio", 0, 1, "largest share of the cluster that its workers take"),
    Feature("tasks_left", "ratio", 0, 1, "unfinished tasks of the workflow over all of them"),
    Feature("children", "log count", 0, 3, "tasks that wait for this one"),
    Feature("slowdown", "log ratio", -1, 1, "age and path ahead over the shortest possible time"),
    Feature("work", "log s", 0, 2, "expected run time over all workers"),
)
"""How urgent a task is."""

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
)
"""How good a node with room is for a task."""

WAIT: Final = (
    Feature("constant", "flag", 1, 1, "always 1: the threshold"),
    Feature("gain", "log ratio", 0, 3, "time to finish now over that if it waits"),
    Feature("gain_share", "ratio", 0, 2, "seconds gained over upward rank"),
    Feature("pressure", "log count", 0, 3, "ready tasks a node"),
    Feature("waited", "ratio", 0, 3, "time that the task is ready over its run time"),
    Feature("claims", "log count", 0, 3, "tasks that already wait for the node"),
)
"""Whether to wait for a busy node although there is a free one."""

NUM_TASK: Final = len(TASK)
NUM_PAIR: Final = len(PAIR)
NUM_WAIT: Final = len(WAIT)
