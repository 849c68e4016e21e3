"""How to choose: all policies by name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from dagsail.registry import Registry

if TYPE_CHECKING:
    from dagsail.scheduling.ports import Policy

POLICIES: Final = Registry("policy", "policies")
for _name, _module, _summary in (
    ("fifo", "fifo", "first come, first served on the first node with room"),
    ("round-robin", "round_robin", "each task on the next node in turn"),
    ("random", "random", "a random node with room"),
    ("sjf", "sjf", "shortest task first, where it finishes earliest"),
    ("least-remaining-work", "least_remaining_work", "workflow with the least work left first"),
    ("fair", "fair", "workflow that holds least first (dominant resource fairness)"),
    ("critical-path", "critical_path", "longest path behind it first, earliest finish"),
    ("deadline-slack", "deadline_slack", "least slack to the deadline first, earliest finish"),
    ("min-min", "min_min", "of all ready tasks, the one that can finish first"),
    ("max-min", "max_min", "of all ready tasks, the one whose best finish is last"),
    ("sufferage", "sufferage", "the task that loses most on its second-best node first"),
    ("olb", "olb", "each task on the least loaded node"),
    ("heft", "heft", "plan by upward rank, earliest finish with insertion; re-plans"),
    ("heft-static", "heft_static", "HEFT followed to the letter, without re-planning on drift"),
    ("cpop", "cpop", "plan with the critical path on one node; re-plans"),
    ("peft", "peft", "plan with an optimistic cost table; re-plans"),
    ("lookahead-heft", "lookahead_heft", "HEFT that looks at the children's finish; re-plans"),
    ("tetris", "tetris", "pack by alignment, leaning to short remaining work"),
    ("fgd", "fgd", "least growth of fragmentation for the typical task"),
    (
        "workflow-rank-round-robin",
        "workflow_rank",
        "Common Workflow Scheduler: rank, then nodes in turn",
    ),
    ("data-locality", "data_locality", "where the data is, with a short wait for it"),
    ("kube-default@1.34", "kube_default_134", "kube-scheduler 1.34: spread, random ties"),
    ("kube-default@1.35", "kube_default_135", "kube-scheduler 1.35: spread, heap-order ties"),
    ("kube-default@1.36", "kube_default_136", "kube-scheduler 1.36 and 1.37: spread"),
    ("kube-most-allocated", "kube_most_allocated", "kube-scheduler 1.36 set to pack"),
    ("scorer", "scorer", "weighs features of tasks and nodes, waits for better ones; tuned"),
):
    POLICIES.add(_name, f"dagsail.policies.heuristics.{_module}:POLICY", _summary)
POLICIES.add(
    "portfolio",
    "dagsail.policies.portfolio:POLICY",
    "plays six rules forward from time to time, follows the best",
)
POLICIES.add(
    "learned",
    "dagsail.policies.neural.learned:default_policy",
    "a trained network decides; the objective is its input: learned:completion=1+cost=1",
)

DEFAULT_POLICIES: Final = (
    "fifo",
    "kube-default@1.36",
    "kube-most-allocated",
    "least-remaining-work",
    "critical-path",
    "deadline-slack",
    "min-min",
    "heft",
    "tetris",
    "scorer",
    "learned",
)
"""What `demo` and `compare` show unless told otherwise: one of each way of thinking."""


def policy(name: str) -> Policy:
    """The policy of that name.

    Raises:
        UnknownNameError: naming the near miss.
    """
    loaded = POLICIES.get(name).load()
    made: Policy = loaded() if inspect.isfunction(loaded) else loaded
    return made
