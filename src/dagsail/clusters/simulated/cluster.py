"""Simulation: the Python face of the simulated cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dagsail.clusters.simulated import engine
from dagsail.clusters.simulated.world import World, make_world
from dagsail.domain import snapshot as states
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import StuckError
from dagsail.domain.scenario import Scenario
from dagsail.domain.snapshot import Names, Snapshot
from dagsail.domain.workflow import Arrival
from dagsail.scheduling.assemble import assemble
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory
from dagsail.scheduling.ports import CompiledPolicy, Policy

OnDecision = Callable[[Snapshot, Memory, Callable[[], int]], int]
"""Wraps one decision: gets the snapshot, the memory and the call that decides."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a simulation.

    Attributes:
        arrivals, cluster, scenario, seed, policy: what was simulated.
        names: of everything by position.
        snapshot: final state; `workflows` holds arrival and finish times.
        attempts: one row an attempt, in order of ending (`world.ATTEMPT`).
        attempt_workers: nodes of the workers of multi-worker attempts.
        num_decisions: placements made.
        num_instants: instants processed.
    """

    arrivals: tuple[Arrival, ...]
    cluster: Cluster
    scenario: Scenario
    seed: int
    policy: str
    names: Names
    snapshot: Snapshot
    attempts: Any
    attempt_workers: Any
    num_decisions: int
    num_instants: int


class Simulation:
    """A cluster that exists only in arrays. One object is one run; it cannot be rewound."""

    def __init__(
        self,
        arrivals: Sequence[Arrival],
        cluster: Cluster,
        scenario: Scenario | None = None,
        seed: int = 0,
    ) -> None:
        """Prepare a run.

        Args:
            arrivals: workflows and their times; sorted here.
            cluster: the nodes.
            scenario: effects to model; the default models transfers only.
            seed: of everything random in the simulated world.

        Raises:
            InfeasibleError: if a task fits on no node.
        """
        self.scenario = Scenario() if scenario is None else scenario
        self.arrivals = tuple(sorted(arrivals, key=lambda arrival: arrival.time_s))
        self.cluster = cluster
        self.seed = seed
        self.snapshot, self.names = assemble(self.arrivals, cluster, self.scenario)
        self.world: World = make_world(self.arrivals, cluster, self.scenario, self.snapshot, seed)
        engine.prepare(self.snapshot, self.world)

    def twin(self) -> Simulation:
        """The same run on arrays of its own; costs a copy instead of a preparation."""
        twin = copy.copy(self)
        twin.snapshot, twin.world = self.snapshot.copy(), self.world.copy()
        return twin

    def run(self, policy: Policy, on_decision: OnDecision | None = None) -> Run:
        """Simulate to the end.

        Args:
            policy: decides. Compiled policies run inside one kernel.
            on_decision: called around every single placement instead, for records and timing.

        Raises:
            StuckError: if tasks are left that will never run; names one and says why.
        """
        memory = policy.prepare(self.snapshot, self.seed)
        if on_decision is None and isinstance(policy, CompiledPolicy):
            self._run_compiled(policy.compiled(), memory)
        else:
            self._run_stepwise(policy, memory, on_decision)
        return self.outcome(policy.name)

    def outcome(self, policy_name: str) -> Run:
        """What came of it, once it has ended."""
        law = self.world.law[0]
        return Run(
            self.arrivals,
            self.cluster,
            self.scenario,
            self.seed,
            policy_name,
            self.names,
            self.snapshot,
            self.world.attempts[: law["num_attempts"]],
            self.world.attempt_workers[: law["num_attempt_workers"]],
            int(law["num_decisions"]),
            int(law["num_instants"]),
        )

    def _run_compiled(self, decide: Any, memory: Memory) -> None:
        while True:
            code = engine.simulate(self.snapshot, self.world, memory, decide)
            if code == engine.DONE:
                return
            self._recover(code)

    def _run_stepwise(self, policy: Policy, memory: Memory, on_decision: OnDecision | None) -> None:
        while True:
            code = engine.advance(self.snapshot, self.world)
            if code == engine.DONE:
                return
            if code != engine.DECIDE:
                self._recover(code)
                continue
            if on_decision is None:
                policy.decide(self.snapshot, memory, engine.UNLIMITED)
            else:
                self._decide_singly(policy, memory, on_decision)
            engine.start_placed(self.snapshot, self.world)

    def _decide_singly(self, policy: Policy, memory: Memory, on_decision: OnDecision) -> None:
        """Make the placements of one instant one by one, each within the hook."""

        def decide() -> int:
            return policy.decide(self.snapshot, memory, 1)

        while on_decision(self.snapshot, memory, decide) == 1:
            if self.snapshot.status[0]["num_ready"] == 0:
                break

    def _recover(self, code: int) -> None:
        """Grow the log, or give up with the reason."""
        if code == engine.STUCK:
            raise self.stuck()
        self.grow_log()

    def grow_log(self) -> None:
        """Make room for more attempts; `world` is another object afterwards."""
        world = self.world
        self.world = world.replace(
            attempts=np.concatenate([world.attempts, np.zeros_like(world.attempts)]),
            attempt_workers=np.concatenate(
                [world.attempt_workers, np.zeros_like(world.attempt_workers)]
            ),
        )

    def stuck(self) -> StuckError:
        """Why the run cannot go on."""
        return StuckError(self._why_stuck())

    def _why_stuck(self) -> str:
        left = int(self.world.law[0]["tasks_left"])
        now_s = float(self.snapshot.status[0]["now_s"])
        state = self.snapshot.tasks["state"]
        for wanted in (states.READY, states.BOUND, states.PENDING):
            if len(found := np.flatnonzero(state == wanted)):
                break
        task = int(found[0])
        workflow = self.names.workflows[int(self.snapshot.tasks[task]["workflow"])]
        if wanted == states.READY:
            reason = f"is ready but never starts ({self._why_waiting(task)})"
        elif wanted == states.BOUND:
            times = int(self.snapshot.tasks[task]["attempt"])
            reason = f"was evicted {times} times and never ends"
        else:
            reason = "waits for a parent that never ends"
        return (
            f"the simulation cannot go on at {now_s:.0f} s: task '{self.names.tasks[task]}' of"
            f" workflow '{workflow}' {reason}; {left} tasks are left"
        )

    def _why_waiting(self, task: int) -> str:
        """Why a ready task starts on no node, with the number of nodes for each reason."""
        reasons: dict[str, int] = {}
        for node in range(len(self.snapshot.nodes)):
            code = legality.verdict(self.snapshot, task, node)
            if code != legality.LEGAL:
                reason = legality.explain(self.snapshot, self.names, task, node, code)
            elif self.snapshot.tasks[task]["num_workers"] > 1:
                reason = "one worker fits, but not all at once"
            else:
                reason = "it fits, but the policy waits"
            reasons[reason] = reasons.get(reason, 0) + 1
        return "; ".join(f"{count} nodes: {reason}" for reason, count in reasons.items())
