"""Environment: the simulator as a Gymnasium environment, one decision a step.

For many at once, `lockstep` is the same in arrays and several times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import POOLS
from dagsail.domain.errors import InputError
from dagsail.policies.scoring import schema
from dagsail.policies.scoring.observation import (
    MAX_NODES,
    MAX_TASKS,
    NUM_ACTIONS,
    NUM_CHOICES,
    arrays_of,
)
from dagsail.training.lockstep import Episode, Lockstep
from dagsail.training.rewards import TERMS, RewardSettings

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError:
    raise InputError(
        "the environment needs the package gymnasium, which is not installed;"
        " run: pip install 'dagsail[train]'"
    ) from None

Observations = dict[str, NDArray[Any]]

_BOUND: Final = 6.0
"""No scaled feature is larger."""
_BLOCKS: Final = {
    "cluster": (schema.NUM_GLOBAL,),
    "tasks": (MAX_TASKS, schema.NUM_TASK),
    "pairs": (MAX_TASKS, MAX_NODES, schema.NUM_PAIR),
    "nodes": (MAX_TASKS, MAX_NODES, schema.NUM_NODE),
    "waits": (MAX_TASKS, schema.NUM_WAIT),
}


class Environment(gymnasium.Env[Observations, np.int64]):
    """Decisions about one simulation after another.

    An observation holds the arrays of `policies.scoring.observation`, an action is `task *
    NUM_CHOICES + choice`, where the last choice lets the task wait. `info["action_mask"]` and
    `action_masks()` say which actions are legal; instead of another one the first legal action is
    carried out, and `info["was_legal"]` is False. `info["reward_terms"]` holds every term.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own declaration

    def __init__(
        self, source: Callable[[int], Simulation], reward: RewardSettings | None = None
    ) -> None:
        """Take the simulations.

        Args:
            source: gives a fresh simulation for a seed.
            reward: weights of its terms; the completion time alone if None.
        """
        self._source = source
        self._reward = RewardSettings() if reward is None else reward
        self.observation_space: gymnasium.Space[Any] = spaces.Dict(
            {
                **{
                    name: spaces.Box(-_BOUND, _BOUND, shape, np.float32)
                    for name, shape in _BLOCKS.items()
                },
                "legal": spaces.MultiBinary((MAX_TASKS, NUM_CHOICES)),
                "pools": spaces.Box(0, len(POOLS) - 1, (MAX_TASKS, MAX_NODES), np.int64),
            }
        )
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self._steps: Lockstep | None = None
        self._ended: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode; the seed says which, None draws one."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        begun = iter([self._source(number)])
        self._steps = Lockstep(1, lambda _: next(begun, None), by_class=self._reward.by_class)
        self._ended = None
        return self._observations(), self._info(np.zeros(len(TERMS)), was_legal=True)

    def step(self, action: np.int64) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Carry out one action; the episode ends when every workflow has."""
        assert self._steps is not None, "reset() first"
        mask = self.action_masks()
        was_legal = bool(mask[action])
        chosen = int(action) if was_legal else int(mask.argmax())
        actions = np.array([chosen])
        pools, loads = self._steps.pools(actions), self._steps.loads
        for ended in self._steps.step(actions):
            self._ended = ended
        terms = self._steps.terms.copy()
        total = float(self._reward.totals(terms, pools, loads)[0])
        info = self._info(terms[0], was_legal)
        return self._observations(), total, self._ended is not None, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now. bool (NUM_ACTIONS,)."""
        assert self._steps is not None, "reset() first"
        mask: NDArray[np.bool_] = self._steps.observation.legal[0].flatten()
        return mask

    @property
    def simulation(self) -> Simulation:
        """What runs now, or has just ended."""
        assert self._steps is not None, "reset() first"
        return self._ended.simulation if self._ended else self._steps.seat(0).simulation

    def _observations(self) -> Observations:
        assert self._steps is not None
        found = {
            name: array[0].copy() for name, array in arrays_of(self._steps.observation).items()
        }
        found["legal"] = found["legal"].astype(np.int8)
        return found

    def _info(self, terms: NDArray[np.float64], was_legal: bool) -> dict[str, Any]:
        named = {term.name: float(value) for term, value in zip(TERMS, terms, strict=True)}
        return {
            "action_mask": self.action_masks(),
            "was_legal": was_legal,
            "reward_terms": named,
        }
