"""Rollouts: worlds played by the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.evaluation.aims import aims
from dagsail.policies.neural.model import INPUTS
from dagsail.policies.neural.network import Network
from dagsail.policies.scoring.objective import NUM_AIMS, Objective
from dagsail.policies.scoring.observation import arrays_of
from dagsail.policies.scoring.weights import ByAim, blend
from dagsail.training import rewards
from dagsail.training.learner import network_of
from dagsail.training.lockstep import Lockstep
from dagsail.training.rewards import RewardSettings
from dagsail.training.workers import Bench

NOTHING: Final = RewardSettings(weights={})

_WIDTH = 64


@dataclass(frozen=True, slots=True)
class Rollouts:
    """D decisions of E episodes, episode by episode in the order in which they were made.

    Attributes:
        asked: what the network was asked, by name. (D, ...)
        actions, logs, values: what it answered, and what it expected. (D,)
        rewards: of each aim, what a decision brought about until the next. float64 (D, NUM_AIMS)
        extras: what counts beside the aims, the weighted sum of its terms. (D,)
        times_s: when each was made. (D,)
        starts: where each episode begins, and the end. (E + 1,)
        reference_s: of each episode: the mean critical path of its workflows. (E,)
        due: of each episode: sum of the weights of its workflows with a deadline. (E,)
    """

    asked: dict[str, NDArray[Any]]
    actions: NDArray[np.int64]
    logs: NDArray[np.float32]
    values: NDArray[np.float32]
    rewards: NDArray[np.float64]
    extras: NDArray[np.float64]
    times_s: NDArray[np.float64]
    starts: NDArray[np.int64]
    reference_s: NDArray[np.float64]
    due: NDArray[np.float64]

    def totals(self) -> NDArray[np.float64]:
        """Sum of the rewards of each episode. (E, NUM_AIMS)."""
        return np.add.reduceat(self.rewards, self.starts[:-1], axis=0)


def play(
    network: Network,
    weights: ByAim,
    simulations: Sequence[Simulation],
    objectives: NDArray[np.float32],
    generator: torch.Generator | None,
    exploration: float = 0.0,
    reward: RewardSettings = NOTHING,
) -> Rollouts:
    """Play simulations to their end.

    Args:
        network: decides.
        weights: of the scorer that chooses candidates.
        simulations: used up; one episode each.
        objectives: of each. float32 (E, NUM_AIMS)
        generator: draws the actions; None takes the likeliest.
        exploration: share of decisions that any legal action may make; `logs` are those of the
            mixture that was drawn from.
        reward: what counts beside the aims.

    Raises:
        TrainingError: if a reward is not a number.
    """
    reference_s = np.array(
        [simulation.snapshot.workflows["critical_path_s"].mean() for simulation in simulations]
    )
    due = np.array([_due(simulation) for simulation in simulations])
    source = iter(simulations)
    steps = Lockstep(
        min(_WIDTH, len(simulations)),
        lambda _: next(source, None),
        lambda episode: blend(weights, objectives[episode]),
        by_class=reward.by_class,
    )
    rows: list[dict[str, NDArray[Any]]] = []
    actions = np.zeros(len(steps.seats), np.int64)
    while len(active := steps.active):
        row = {name: kept(array[active]) for name, array in arrays_of(steps.observation).items()}
        seats = [steps.seat(index) for index in active.tolist()]
        row["episode"] = np.array([seat.episode for seat in seats])
        row["time_s"] = np.array([seat.simulation.snapshot.status[0]["now_s"] for seat in seats])
        row["objective"] = objectives[row["episode"]]
        found = answer(network, row, generator, exploration)
        row |= {name: found[name] for name in ("action", "log", "value")}
        actions[active] = row["action"]
        pools, loads = steps.pools(actions)[active], steps.loads[active]
        steps.step(actions)
        terms = steps.terms[active]
        row["reward"] = _aims_of(terms)
        row["extra"] = reward.totals(terms, pools, loads)
        rows.append(row)
    return _in_order(rows, reference_s, due)


def _aims_of(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rewards by aim from reward terms. (D, NUM_AIMS)."""
    cost = terms[:, [rewards.COST_CPU, rewards.COST_MEMORY, rewards.COST_GPU]].sum(axis=1)
    completion, deadline, balance = (
        terms[:, index] for index in (rewards.COMPLETION, rewards.DEADLINE, rewards.BALANCE)
    )
    by_aim = np.stack([completion, deadline, cost, balance], axis=1)
    assert by_aim.shape[1] == NUM_AIMS
    return by_aim


def _due(simulation: Simulation) -> float:
    flows = simulation.snapshot.workflows
    return float(((4 - flows["priority"]) / 4.0)[np.isfinite(flows["deadline_s"])].sum())


@torch.inference_mode()
def answer(
    network: Network,
    asked: dict[str, NDArray[Any]],
    generator: torch.Generator | None,
    exploration: float = 0.0,
) -> dict[str, NDArray[Any]]:
    """The actions that a network takes, by name: their log-probabilities and the values, too."""
    logs, values = network(**inputs_of({name: torch.from_numpy(asked[name]) for name in INPUTS}))
    if exploration > 0.0:
        logs = explore(logs, exploration)
    if generator is None:
        chosen = logs.argmax(dim=1)
    else:
        chosen = torch.multinomial(logs.exp(), 1, generator=generator)[:, 0]
    likelihood = logs.gather(1, chosen[:, None])[:, 0]
    return {
        "action": chosen.numpy(),
        "log": likelihood.numpy(),
        "value": values.numpy(),
        "all": logs.numpy(),
    }


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """As it is kept, in half the room: a decision takes 10 kB otherwise, a round has 100,000."""
    if array.dtype == np.float32:
        return array.astype(np.float16)
    return array.astype(np.int8) if array.dtype == np.int64 else array


def inputs_of(kept: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What the network was asked, from how it is kept."""
    kinds = {torch.float16: torch.float32, torch.int8: torch.int64}
    return {name: kept[name].to(kinds.get(kept[name].dtype, kept[name].dtype)) for name in INPUTS}


def explore(logs: torch.Tensor, exploration: float) -> torch.Tensor:
    """Log-probabilities of the mixture with an even choice among what is legal."""
    legal = torch.isfinite(logs)
    even = legal.to(logs.dtype) / legal.sum(dim=1, keepdim=True)
    return torch.log((1.0 - exploration) * logs.exp() + exploration * even)


def _in_order(
    rows: list[dict[str, NDArray[Any]]], reference_s: NDArray[np.float64], due: NDArray[np.float64]
) -> Rollouts:
    """Sort decisions by episode."""
    episode = np.concatenate([row["episode"] for row in rows])
    order = np.argsort(episode, kind="stable")
    columns = {
        name: np.concatenate([row.pop(name) for row in rows])[order] for name in list(rows[0])
    }
    return Rollouts(
        asked={name: columns[name] for name in INPUTS},
        actions=columns["action"],
        logs=columns["log"],
        values=columns["value"],
        rewards=columns["reward"],
        extras=columns["extra"],
        times_s=columns["time_s"],
        starts=np.searchsorted(columns["episode"], np.arange(len(due) + 1)),
        reference_s=reference_s,
        due=due,
    )


Learned = tuple[dict[str, Any], ByAim]
"""State of a network, and the weights of the scorer that chooses candidates."""


def run_network(
    bench: Bench, learned: Learned, worlds: Sequence[tuple[int, Objective]]
) -> NDArray[np.float64]:
    """Job: aims of worlds under a network that always does what is likeliest."""
    simulations = _play_worlds(bench, learned, worlds)[0]
    found = [aims(simulation.outcome("learned")) for simulation in simulations]
    return np.array(found).reshape(-1, NUM_AIMS)


def values_of(
    bench: Bench, learned: Learned, worlds: Sequence[tuple[int, Objective]]
) -> NDArray[np.float32]:
    """Job: what the critic expects at each decision. (D,)."""
    return _play_worlds(bench, learned, worlds)[1].values if worlds else np.zeros(0, np.float32)


def _play_worlds(
    bench: Bench, learned: Learned, worlds: Sequence[tuple[int, Objective]]
) -> tuple[list[Simulation], Rollouts]:
    state, weights = learned
    simulations = [bench.worlds.simulation(episode) for episode, _ in worlds]
    objectives = np.array([objective for _, objective in worlds])
    network = network_of(state, bench.spec.network)
    return simulations, play(network, weights, simulations, objectives, None)
