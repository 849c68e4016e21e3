"""Portfolio: looks ahead under each of a few rules and follows the one that fares best now.

No rule is best everywhere; which one fits depends on what is here. From time to time every rule is
played forward over the present workflows (`rollout`), and another takes over where it promises
clearly less total completion time. Looks are spaced by simulated time and by how much has been
placed since the last one, and each plays a bounded number of placements: never by the clock, so
that equal input gives equal decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.policies import rollout
from dagsail.policies.heuristics import critical_path, kube_default_136, least_remaining_work
from dagsail.policies.heuristics import min_min as min_min_rule
from dagsail.policies.rule import Rule
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import preset, without_waiting
from dagsail.scheduling.listing import Memory

_INTERVAL_S: Final = 2.0
"""Least time between two looks."""
_PLACED_SHARE: Final = 0.05
"""Share of the present tasks that must have been placed since the last look."""
_MARGIN: Final = 0.002
"""A rule takes over if it promises to save at least this share of total completion time."""
_MAX_PLACEMENTS: Final = 5000
"""Length of one rollout: a look at 5,000 waiting tasks is as long as it gets."""


@dataclass(slots=True)
class State:
    """What a portfolio keeps between decisions.

    Attributes:
        current: the rule that is followed.
        memories: one a rule, for what is really decided.
        scratch: copy of the snapshot for rollouts; `plays` are the rules' memories there.
        heap, outcome: room for a rollout.
        num_placed: since the last look.
        looked_s: time of the last look; `stamp` the last instant.
        promises: total completion time under each rule at the last look.
    """

    current: int
    memories: list[Memory]
    plays: list[Memory]
    scratch: Snapshot
    heap: NDArray[np.int64]
    outcome: NDArray[np.float64]
    promises: NDArray[np.float64]
    num_placed: int = 2**31
    looked_s: float = -np.inf
    stamp: int = -1
    num_looks: int = 0


class Portfolio:
    """A policy that follows the best of several rules."""

    def __init__(self, name: str, rules: Sequence[Rule]) -> None:
        """Take the rules; the first is followed until there is a reason for another."""
        self.name = name
        self.rules = tuple(rules)

    def prepare(self, snapshot: Snapshot, seed: int) -> State:
        """A fresh state for one run."""
        return State(
            current=0,
            memories=[rule.prepare(snapshot, seed) for rule in self.rules],
            plays=[rule.prepare(snapshot, seed) for rule in self.rules],
            scratch=snapshot.copy(),
            heap=np.zeros(len(snapshot.tasks), np.int64),
            outcome=np.zeros(rollout.NUM_OUTCOMES),
            promises=np.zeros(len(self.rules)),
        )

    def decide(self, snapshot: Snapshot, state: State, limit: int) -> int:
        """Place up to `limit` ready tasks by the rule that fits now; returns how many."""
        status = snapshot.status[0]
        if state.stamp != status["stamp"]:
            state.stamp = int(status["stamp"])
            if self._is_time_to_look(snapshot, state):
                self._look(snapshot, state)
        rule = self.rules[state.current]
        placed = rule.decide(snapshot, state.memories[state.current], limit)
        state.num_placed += placed
        return placed

    def _is_time_to_look(self, snapshot: Snapshot, state: State) -> bool:
        if snapshot.status[0]["now_s"] < state.looked_s + _INTERVAL_S:
            return False
        return state.num_placed > _PLACED_SHARE * rollout.present_tasks(snapshot)

    def _look(self, snapshot: Snapshot, state: State) -> None:
        """Play every rule forward; let the best take over if it is clearly better."""
        state.num_placed = 0
        state.num_looks += 1
        state.looked_s = float(snapshot.status[0]["now_s"])
        for index, rule in enumerate(self.rules):
            rollout.synchronise(snapshot, state.scratch)
            state.plays[index].patient_s[:] = -np.inf  # who waited in the last play
            rollout.roll_out(
                state.scratch,
                state.plays[index],
                rule.compiled(),
                _MAX_PLACEMENTS,
                state.heap,
                state.outcome,
            )
            is_done = state.outcome[rollout.COMPLETE] == 1.0
            state.promises[index] = state.outcome[rollout.FLOW_S] if is_done else np.inf
        best = int(np.argmin(state.promises))
        if state.promises[best] < state.promises[state.current] * (1.0 - _MARGIN):
            state.current = best
            rules = self.rules[best].compiled()
            rollout.take_over(snapshot, state.memories[best], rules)


POLICY = Portfolio(
    "portfolio",
    (
        scorer("scorer", preset()),
        scorer("scorer-at-once", without_waiting(preset())),
        least_remaining_work.POLICY,
        critical_path.POLICY,
        min_min_rule.POLICY,
        kube_default_136.POLICY,
    ),
)
