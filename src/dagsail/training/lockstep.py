"""Lockstep: many simulations that wait for one decision each, arrays in and arrays out.

The loop of `Simulation.run` turned inside out. `step` carries out one action in every simulation
and takes each to its next question; a simulation that has ended is replaced by the next one that
its source gives, and its place stays empty when there are no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated import engine
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.clusters.simulated.world import World
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import entry, kernel
from dagsail.policies.scoring import observation
from dagsail.policies.scoring.observation import MAX_NODES, NUM_CHOICES, Observation
from dagsail.policies.scoring.scorer import preparing
from dagsail.policies.scoring.weights import Weights, preset
from dagsail.scheduling.listing import Memory
from dagsail.structs import pointer_to
from dagsail.training import rewards
from dagsail.training.rewards import NO_POOL, NUM_TERMS

NO_ACTION: Final = -1

_snapshot_at = pointer_to(Snapshot)
_world_at = pointer_to(World)
_memory_at = pointer_to(Memory)

Source = Callable[[int], Simulation | None]
"""Gives the simulation of an episode by its number; None: there are no more."""


@dataclass(slots=True)
class Seat:
    """One of the simulations in lockstep.

    Attributes:
        simulation: what runs; its arrays are what the addresses point to.
        memory: of the scorer that orders candidates.
        episode: number of the episode.
        terms: sum of each reward term over the episode so far.
        num_steps: actions so far.
    """

    simulation: Simulation
    memory: Memory
    episode: int
    terms: NDArray[np.float64] = field(default_factory=lambda: np.zeros(NUM_TERMS))
    num_steps: int = 0


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of a simulation that has ended."""

    seat: int
    number: int
    simulation: Simulation
    terms: NDArray[np.float64]
    num_steps: int


@entry
def go_on(
    addresses: NDArray[np.int64],
    meters: NDArray[Any],
    out: Observation,
    row: int,
    action: int,
    terms: NDArray[np.float64],
) -> int:
    """Carry out an action in one simulation, then run it to the next question or its end.

    Args:
        addresses: of snapshot, world and memory. int64 (3,)
        meters: of this simulation. METER (1,)
        out: the observations.
        row: of this simulation in `out`.
        action: index, or NO_ACTION.
        terms: what the action brought about is added. float64 (NUM_TERMS,)

    Returns:
        A code of the engine: DECIDE, DONE, STUCK or LOG_FULL.
    """
    snapshot = _snapshot_at(addresses[0])
    world = _world_at(addresses[1])
    memory = _memory_at(addresses[2])
    if action >= 0:
        place, choice = action // NUM_CHOICES, action % NUM_CHOICES
        if choice < MAX_NODES:
            pair = out.pairs[row, place, choice]
            rewards.on_placement(snapshot, meters, out.task_ids[row, place], pair, terms)
        observation.act(snapshot, memory, out, row, action)
    elif world.law[0].in_instant == 0:
        return _advance(snapshot, world, memory, meters, out, row, terms)
    if world.law[0].in_instant == 0 and (
        snapshot.status[0].num_ready > 0 and observation.observe(snapshot, memory, out, row) > 0
    ):
        return engine.DECIDE
    if world.law[0].in_instant == 0:
        engine.start_placed(snapshot, world)
    return _advance(snapshot, world, memory, meters, out, row, terms)


@kernel
def _advance(
    snapshot: Snapshot,
    world: World,
    memory: Memory,
    meters: NDArray[Any],
    out: Observation,
    row: int,
    terms: NDArray[np.float64],
) -> int:
    """On to the next instant with a question."""
    while True:
        if world.law[0].in_instant == 0 and world.law[0].num_timers > 0:
            next_s = world.timers[world.timer_heap[0]].time_s
            rewards.on_leaving(snapshot, meters, next_s, terms)
        code = engine.next_instant(snapshot, world)
        if code == engine.PASSED:
            continue
        if code == engine.LOG_FULL:
            return code
        rewards.on_time(snapshot, world, meters, terms)
        if code != engine.DECIDE:
            return code
        if observation.observe(snapshot, memory, out, row) > 0:
            return code
        engine.start_placed(snapshot, world)


@entry
def step_all(
    addresses: NDArray[np.int64],
    meters: NDArray[Any],
    out: Observation,
    actions: NDArray[np.int64],
    terms: NDArray[np.float64],
    codes: NDArray[np.int64],
) -> None:
    """`go_on` in every simulation; arguments as there, with B rows."""
    for row in range(codes.shape[0]):
        terms[row] = 0.0
        if codes[row] == engine.DECIDE:
            codes[row] = go_on(addresses[row], meters[row], out, row, actions[row], terms[row])


class Lockstep:
    """So many simulations at once.

    Attributes:
        observation: the questions, one row a simulation; overwritten by each step.
        terms: reward terms of the last step. float64 (B, NUM_TERMS).
        seats: the simulations; None where there are no more.
    """

    def __init__(
        self,
        count: int,
        source: Source,
        weights: Callable[[int], Weights] | None = None,
        by_class: bool = False,
    ) -> None:
        """Start the first `count` episodes of a source.

        Args:
            count: how many run side by side.
            source: gives the simulation of an episode; each is used up.
            weights: of the scorer that orders candidates, by episode; the preset's if None.
            by_class: whether completion times are divided by what is usual in their family.
        """
        self._source = source
        self._by_class = by_class
        self._weights = weights
        self._next = 0
        self._addresses = np.zeros((count, 3), np.int64)
        self._meters = np.zeros((count, 1), rewards.METER)
        self._codes = np.full(count, engine.DONE, np.int64)
        self.observation = observation.make_observation(count)
        self.terms = np.zeros((count, NUM_TERMS))
        self.seats: list[Seat | None] = [None] * count
        for index in range(count):
            self._begin(index)

    @property
    def active(self) -> NDArray[np.int64]:
        """Rows in which a question waits for its answer."""
        return np.flatnonzero(self._codes == engine.DECIDE)

    def step(self, actions: NDArray[np.int64]) -> list[Episode]:
        """Carry out one action in each simulation; returns the episodes that ended.

        `observation` and `terms` then hold the next questions and what the actions brought about.
        In place of an ended episode stands the first question of the next.

        Raises:
            StuckError: if a simulation cannot go on.
        """
        asked = self.active
        step_all(self._addresses, self._meters, self.observation, actions, self.terms, self._codes)
        ended: list[Episode] = []
        for index in asked.tolist():
            if self._codes[index] == engine.LOG_FULL:
                self._resume(index, self.terms[index])
            seat = self.seat(index)
            seat.terms += self.terms[index]
            seat.num_steps += 1
            if self._codes[index] == engine.DECIDE:
                continue
            if self._codes[index] == engine.STUCK:
                raise seat.simulation.stuck()
            ended.append(Episode(index, seat.episode, seat.simulation, seat.terms, seat.num_steps))
            self._begin(index)
        return ended

    @property
    def loads(self) -> NDArray[np.float64]:
        """Mean load of the nodes of each simulation when time last passed. (B,)."""
        loads: NDArray[np.float64] = self._meters[:, 0]["load"].copy()
        return loads

    def pools(self, actions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Position in POOLS of the node that each action would place on, or NO_POOL. (B,)."""
        place, choice = np.divmod(np.maximum(actions, 0), NUM_CHOICES)
        nodes = np.minimum(choice, MAX_NODES - 1)
        pools = self.observation.pools[np.arange(len(actions)), place, nodes]
        return np.where((actions >= 0) & (choice < MAX_NODES), pools, NO_POOL)

    def seat(self, index: int) -> Seat:
        """One of the simulations, which must not have ended."""
        seat = self.seats[index]
        assert seat is not None
        return seat

    def _begin(self, index: int) -> None:
        """Take the next simulation to its first question."""
        self.seats[index] = None
        self._codes[index] = engine.DONE
        simulation = self._source(self._next)
        if simulation is None:
            self.observation.legal[index] = False
            return
        weights = preset() if self._weights is None else self._weights(self._next)
        memory = preparing(weights)(simulation.snapshot, simulation.seed)
        self.seats[index] = Seat(simulation, memory, self._next)
        self._next += 1
        meter = np.zeros(1, rewards.METER)
        paths = simulation.snapshot.workflows["critical_path_s"]
        meter["reference_s"] = max(float(paths.mean()), 1.0)
        meter["by_class"] = self._by_class
        self._meters[index] = meter
        self.observation.looked[index] = -1
        self._point(index)
        self._go(index, np.zeros(NUM_TERMS))
        if self._codes[index] == engine.LOG_FULL:
            self._resume(index, np.zeros(NUM_TERMS))

    def _point(self, index: int) -> None:
        seat = self.seat(index)
        structs = (seat.simulation.snapshot, seat.simulation.world, seat.memory)
        self._addresses[index] = [struct.address for struct in structs]

    def _resume(self, index: int, terms: NDArray[np.float64]) -> None:
        """Go on with a longer log."""
        while self._codes[index] == engine.LOG_FULL:
            self.seat(index).simulation.grow_log()
            self._point(index)
            self._go(index, terms)

    def _go(self, index: int, terms: NDArray[np.float64]) -> None:
        self._codes[index] = go_on(
            self._addresses[index], self._meters[index], self.observation, index, NO_ACTION, terms
        )
