"""Rewards: named terms of what a decision brought about, each of them the better the larger.

A term is measured from one decision to the next and divided by a stated reference, so that its sum
over a run has a meaning of its own: `completion` is minus the sum of completion times over the
reference time. Weights turn terms into one number; they may differ by pool and by load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.world import EVICTED, World
from dagsail.domain.cluster import POOLS
from dagsail.domain.errors import InputError, TrainingError
from dagsail.domain.snapshot import FINISHED, Snapshot
from dagsail.kernels import kernel
from dagsail.policies.scoring.schema import PAIR
from dagsail.scheduling import estimates


class Term(NamedTuple):
    """One part of a reward."""

    name: str
    unit: str
    meaning: str


TERMS: Final = (
    Term("completion", "references", "minus the time that workflows spend unfinished"),
    Term("deadline", "workflows", "+1 for one in time, -1 for one late, by priority 4 3 2 1 / 4"),
    Term("makespan", "references", "minus the growth of the lower bound on the last finish"),
    Term("wait", "references", "minus the time that placed tasks were ready"),
    Term("start_delay", "tasks", "-1 for one that starts after its start deadline"),
    Term("cost_cpu", "USD", "minus the price of attempts that hold most of a node's cpu"),
    Term("cost_memory", "USD", "minus the same for memory"),
    Term("cost_gpu", "USD", "minus the same for GPUs and other devices"),
    Term("fragmentation", "nodes", "minus the growth of what typical tasks cannot use"),
    Term("balance", "references", "minus the spread of load over nodes x time"),
    Term("overuse", "references", "minus the mean load above 80 %, over 20 %, x time"),
    Term("preemption", "references", "minus the run time that evictions threw away"),
    Term("energy", "kWh", "minus 10 W a core and 300 W a GPU that attempts held"),
    Term("churn", "tasks", "-1 for a placement that repeats an earlier one"),
    Term("herding", "tasks", "-1 for a placement in the way of one that waits for the node"),
    Term("steady", "ratio", "minus the change of the cluster's mean load"),
)
NUM_TERMS: Final = len(TERMS)
NO_POOL: Final = -1
"""Instead of a position in `POOLS`: nothing was placed."""
(
    COMPLETION,
    DEADLINE,
    MAKESPAN,
    WAIT,
    START_DELAY,
    COST_CPU,
    COST_MEMORY,
    COST_GPU,
    FRAGMENTATION,
    BALANCE,
    OVERUSE,
    PREEMPTION,
    ENERGY,
    CHURN,
    HERDING,
    STEADY,
) = range(NUM_TERMS)

_ENOUGH: Final = 20
"""Completed workflows of a family from which its P95 counts."""
_FULL_USE: Final = 0.8
_CORE_W: Final = 10.0
_GPU_W: Final = 300.0
_J_PER_KWH: Final = 3.6e6
_S_PER_H: Final = 3600.0
_PAIR_NAMES: Final = tuple(feature.name for feature in PAIR)
_FRAGMENTATION_FEATURE: Final = _PAIR_NAMES.index("fragmentation")
_IN_THE_WAY_FEATURE: Final = _PAIR_NAMES.index("in_the_way")


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSettings:
    """How much each term weighs; what is not named weighs nothing.

    Attributes:
        weights: by term.
        by_pool: other weights for placements in a pool (`cpu`, `mixed`, `gpu`); they replace those
            of the same terms.
        low_load, high_load: other weights while the mean load of the nodes is below `low`, or above
            `high`; they come last.
        by_class: divide completion times by the P95 of the workflow's family over the last 7 days,
            once 20 of it have ended, instead of by one reference for all.
        limit: the sum is clipped to plus and minus this; None: it is not.

    Raises:
        InputError: if a term or pool is unknown, a weight is not a number, or `low` above `high`.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: {"completion": 1.0})
    by_pool: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    low_load: Mapping[str, float] = field(default_factory=dict)
    high_load: Mapping[str, float] = field(default_factory=dict)
    low: float = 0.5
    high: float = 0.8
    by_class: bool = False
    limit: float | None = None
    _table: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    """Weights by pool (the last: nothing was placed) and load: low, between, high."""

    def __post_init__(self) -> None:
        for pool in self.by_pool:
            if pool not in POOLS:
                raise InputError(f"reward: no pool '{pool}'; allowed are {', '.join(POOLS)}")
        names = [term.name for term in TERMS]
        for weights in (self.weights, self.low_load, self.high_load, *self.by_pool.values()):
            for name, weight in weights.items():
                if name not in names:
                    raise InputError(f"reward: no term '{name}'; allowed are {', '.join(names)}")
                if not math.isfinite(weight):
                    raise InputError(f"reward: {name} weighs {weight}; expected a number")
        if not 0.0 <= self.low <= self.high:
            raise InputError(f"reward: low {self.low:g} and high {self.high:g} are not in order")
        at = (self.low / 2.0, (self.low + self.high) / 2.0, self.high + 1.0)
        table = np.array([[self.vector(pool, load) for load in at] for pool in (*POOLS, None)])
        object.__setattr__(self, "_table", table)

    def vector(self, pool: str | None, load: float) -> NDArray[np.float64]:
        """Weights of all terms for a placement in a pool (None: nothing was placed) at a load."""
        weights = dict(self.weights)
        if pool is not None:
            weights |= self.by_pool.get(pool, {})
        if load < self.low:
            weights |= self.low_load
        if load > self.high:
            weights |= self.high_load
        return np.array([weights.get(term.name, 0.0) for term in TERMS])

    def totals(
        self, terms: NDArray[np.float64], pools: NDArray[np.int64], loads: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """One number from the terms of each decision. (D,).

        Args:
            terms: (D, NUM_TERMS)
            pools: positions in POOLS of where a task was placed, or NO_POOL. (D,)
            loads: mean load of the nodes at that time. (D,)

        Raises:
            TrainingError: if a term is not a number; names it.
        """
        limit = np.inf if self.limit is None else self.limit
        return np.asarray(self.parts(terms, pools, loads).sum(axis=1).clip(-limit, limit))

    def parts(
        self, terms: NDArray[np.float64], pools: NDArray[np.int64], loads: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Each term times its weight; arguments as of `totals`. (D, NUM_TERMS)."""
        check(terms)
        conditions = (loads >= self.low).astype(np.int64) + (loads > self.high)
        return np.asarray(self._table[pools, conditions] * terms)


def check(terms: NDArray[np.float64]) -> None:
    """Refuse terms that are not numbers. (..., NUM_TERMS).

    Raises:
        TrainingError: naming the first such term.
    """
    if not np.isfinite(terms).all():
        term = TERMS[int(np.argwhere(~np.isfinite(terms))[0, -1])].name
        raise TrainingError(f"reward: the term '{term}' is not a number; training stops here")


METER: Final = np.dtype(
    [
        ("time_s", "f8"),  # up to which terms were measured
        ("reference_s", "f8"),
        ("bound_s", "f8"),  # lower bound on the last finish
        ("load", "f8"),  # mean over nodes
        ("by_class", "i8"),  # 1: workflows by the P95 of their own family, once that is known
        ("first_open", "i8"),  # all workflows before it have ended
        ("num_attempts", "i8"),  # of the log, counted so far
    ],
    align=True,
)
"""How far the measuring of one simulation has come."""

Terms = NDArray[np.float64]


@kernel
def on_placement(
    snapshot: Snapshot, meter: NDArray[np.void], task: int, pair: NDArray[np.float32], out: Terms
) -> None:
    """Add what is known when a task is about to be placed, given the features of the pair."""
    row = snapshot.tasks[task]
    now_s = snapshot.status[0].now_s
    out[WAIT] -= (now_s - row.ready_s) / meter[0].reference_s
    if now_s > row.start_deadline_s:
        out[START_DELAY] -= 1.0
    if row.attempt > 0:
        out[CHURN] -= 1.0
    out[FRAGMENTATION] -= pair[_FRAGMENTATION_FEATURE]
    out[HERDING] -= pair[_IN_THE_WAY_FEATURE]


@kernel
def on_time(snapshot: Snapshot, world: World, meter: NDArray[np.void], out: Terms) -> None:
    """Add what happened since the last measurement, up to now."""
    state = meter[0]
    now_s = snapshot.status[0].now_s
    _count_workflows(snapshot, state.time_s, meter, out)
    _count_attempts(snapshot, world, meter, out)
    bound_s = _last_finish_bound_s(snapshot, meter)
    if bound_s > state.bound_s:
        out[MAKESPAN] -= (bound_s - max(state.bound_s, state.time_s)) / state.reference_s
        state.bound_s = bound_s
    state.time_s = now_s


@kernel
def on_leaving(snapshot: Snapshot, meter: NDArray[np.void], until_s: float, out: Terms) -> None:
    """Add what the loads of the nodes cost until the next instant."""
    state = meter[0]
    total, squares, excess = 0.0, 0.0, 0.0
    num_nodes = snapshot.nodes.shape[0]
    for node in range(num_nodes):
        load = _load(snapshot, node)
        total += load
        squares += load * load
        excess += max(0.0, load - _FULL_USE) / (1.0 - _FULL_USE)
    mean = total / num_nodes
    references = (until_s - snapshot.status[0].now_s) / state.reference_s
    out[BALANCE] -= math.sqrt(max(squares / num_nodes - mean * mean, 0.0)) * references
    out[OVERUSE] -= excess / num_nodes * references
    out[STEADY] -= abs(mean - state.load)
    state.load = mean


@kernel
def _load(snapshot: Snapshot, node: int) -> float:
    """Largest share in use of a node's resources."""
    load = 0.0
    for resource in range(snapshot.node_free.shape[1]):
        allocatable = snapshot.node_allocatable[node, resource]
        if allocatable > 0:
            load = max(load, 1.0 - snapshot.node_free[node, resource] / allocatable)
    return load


@kernel
def _count_workflows(
    snapshot: Snapshot, since_s: float, meter: NDArray[np.void], out: Terms
) -> None:
    state = meter[0]
    now_s = snapshot.status[0].now_s
    leads = True
    for index in range(state.first_open, snapshot.status[0].num_arrived):
        flow = snapshot.workflows[index]
        end_s = min(flow.finish_s, now_s)
        if end_s >= since_s and end_s > flow.arrival_s:
            open_s = end_s - max(flow.arrival_s, since_s)
            out[COMPLETION] -= max(open_s, 0.0) / _reference_s(snapshot, meter, flow.family)
        if flow.tasks_left > 0:
            leads = False
            continue
        if flow.finish_s > since_s and flow.deadline_s < math.inf:
            in_time = flow.state == FINISHED and flow.finish_s <= flow.deadline_s
            out[DEADLINE] += (1.0 if in_time else -1.0) * (4 - flow.priority) / 4.0
        if leads:
            state.first_open = index + 1


@kernel
def _reference_s(snapshot: Snapshot, meter: NDArray[np.void], family: int) -> float:
    """What completion times of a family are divided by."""
    history = snapshot.histories[family]
    if meter[0].by_class == 1 and history.count >= _ENOUGH:
        return float(max(history.p95_s, 1.0))
    return float(meter[0].reference_s)


@kernel
def _count_attempts(snapshot: Snapshot, world: World, meter: NDArray[np.void], out: Terms) -> None:
    state = meter[0]
    for index in range(state.num_attempts, world.law[0].num_attempts):
        attempt = world.attempts[index]
        if attempt.node < 0 or attempt.start_s == math.inf:
            continue
        held_s = attempt.end_s - attempt.start_s
        workers = snapshot.tasks[attempt.task].num_workers
        _count_cost(snapshot, attempt.shape, attempt.node, held_s * workers, out)
        if attempt.outcome == EVICTED:
            out[PREEMPTION] -= held_s / state.reference_s
    state.num_attempts = world.law[0].num_attempts


@kernel
def _count_cost(snapshot: Snapshot, shape: int, node: int, held_s: float, out: Terms) -> None:
    dominant = 0
    largest = 0.0
    for resource in range(snapshot.node_free.shape[1]):
        amount = snapshot.shape_request[shape, resource]
        share = amount / max(snapshot.node_allocatable[node, resource], 1)
        if share > largest:
            largest = share
            dominant = resource
    usd = estimates.usd_per_h(snapshot, shape, node) * held_s / _S_PER_H
    out[COST_CPU + min(dominant, 2)] -= usd
    watts = _CORE_W * snapshot.shape_request[shape, 0] / 1000.0
    watts += _GPU_W * snapshot.shapes[shape].gpu_milli / 1000.0
    out[ENERGY] -= watts * held_s / _J_PER_KWH


@kernel
def _last_finish_bound_s(snapshot: Snapshot, meter: NDArray[np.void]) -> float:
    """Present work does not end sooner: the longest expected path from what waits or runs."""
    now_s = snapshot.status[0].now_s
    bound_s = 0.0
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.shapes[snapshot.active[index]]
        for position in range(shape.queue_size):
            row = snapshot.tasks[snapshot.queue[shape.queue_start + position]]
            bound_s = max(bound_s, now_s + row.upward_rank_s)
    for index in range(snapshot.status[0].num_bound):
        row = snapshot.tasks[snapshot.bound[index]]
        bound_s = max(bound_s, row.start_s + row.upward_rank_s)
    return bound_s
