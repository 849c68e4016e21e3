"""Lookahead: the network learns from what its likeliest answers lead to, played to the end.

At some questions the simulation is copied once for each of the likeliest answers, and the scorer
plays every copy on with the same luck. What one answer gains over the others is then known with
little noise, for it is all that differs. The network moves towards `old * exp(gain)`, as in expert
iteration (Anthony, Tian and Barber, 2017) with the policy update of Abdolmaleki et al. (2018).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from dagsail.clusters.simulated import engine
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.errors import TrainingError
from dagsail.evaluation import occupation as occupations
from dagsail.policies.rule import Rule
from dagsail.policies.scoring import observation
from dagsail.policies.scoring.observation import arrays_of
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import ByAim, blend
from dagsail.scheduling import listing
from dagsail.training.algorithms.by_gradient import ByGradient
from dagsail.training.learner import Arrays, Learner, network_of
from dagsail.training.lockstep import Lockstep, Seat
from dagsail.training.rollouts import answer, inputs_of, kept
from dagsail.training.settings import Lookahead, Spec
from dagsail.training.updates import gradients_of, mean_of
from dagsail.training.validation import Floats, drawn_objective
from dagsail.training.workers import Bench, Workers

_DECIDED: Final = 0.98
"""Questions whose likeliest answer has this probability are not looked into."""
_MOST: Final = 3.0
_SMALL: Final = 1e-12


class Looker(ByGradient):
    """Expert iteration with the scorer as the one who plays on."""

    def __init__(
        self, settings: Lookahead, learner: Learner, spec: Spec, workers: Workers, stage: int
    ) -> None:
        super().__init__(settings, learner, spec, workers, stage, settings.max_gradient)
        self._settings = settings

    def step(self, number: int) -> dict[str, float]:
        """Play some worlds, look into some questions, then learn from all that are kept."""
        settings, seeds = self._settings, self.seeds_of(number)
        given = (self.learner.network, self.learner.weights, settings)
        seen = self.workers.call(
            look,
            [
                (*given, part, seed)
                for part, seed in zip(self.worlds_of(number), seeds, strict=True)
            ],
        )
        scale = float(np.mean([part["size_of_gains"] for part in seen]))
        found: list[dict[str, float]] = []
        for update in range(settings.updates):
            results = self.workers.call(
                gradient, [(self.adam.weights, scale, [*seed, update]) for seed in seeds]
            )
            self.adam.update([result[0] for result in results])
            found += [result[1] for result in results]
        self.keep()
        return {**mean_of(found), **mean_of(seen), "scale": scale}


def look(
    bench: Bench,
    state: Arrays,
    weights: ByAim,
    settings: Lookahead,
    episodes: list[int],
    seed: list[int],
) -> dict[str, float]:
    """Job: play worlds by the network and look into some of its questions."""
    network = network_of(state, bench.spec.network)
    objectives = np.array([drawn_objective(bench.spec.objective, e) for e in episodes])
    simulations = [bench.worlds.simulation(episode) for episode in episodes]
    horizons_s = [
        settings.horizon * float(one.snapshot.workflows["critical_path_s"].mean())
        for one in simulations
    ]
    chance = [settings.questions / len(one.snapshot.tasks) for one in simulations]
    source = iter(simulations)
    steps = Lockstep(
        len(simulations),
        lambda _: next(source, None),
        lambda episode: blend(weights, objectives[episode]),
    )
    generator = torch.Generator().manual_seed(
        int(np.random.SeedSequence(seed).generate_state(1)[0])
    )
    rng = np.random.default_rng(seed)
    actions = np.zeros(len(steps.seats), np.int64)
    rows: list[dict[str, Any]] = []
    while len(active := steps.active):
        row = {name: kept(array[active]) for name, array in arrays_of(steps.observation).items()}
        seats = [steps.seat(index) for index in active.tolist()]
        row["objective"] = objectives[[seat.episode for seat in seats]]
        found = answer(network, row, generator)
        for place, (index, seat) in enumerate(zip(active.tolist(), seats, strict=True)):
            if rng.random() > chance[seat.episode]:
                continue
            choices = _likeliest(found["all"][place], settings.answers)
            if len(choices) < 2:
                continue
            rule = scorer("scorer", blend(weights, row["objective"][place]))
            ends = [play_on(seat, steps.observation, index, int(c), rule) for c in choices]
            now_s = float(seat.simulation.snapshot.status[0]["now_s"])
            gains = _gains(ends, row["objective"][place], now_s, horizons_s[seat.episode])
            rows.append(
                {
                    **{name: column[place] for name, column in row.items()},
                    "choices": np.pad(choices, (0, settings.answers - len(choices))),
                    "known": np.arange(settings.answers) < len(choices),
                    "old": _padded(found["all"][place][choices], settings.answers),
                    "gains": _padded(gains, settings.answers),
                }
            )
        actions[active] = found["action"]
        steps.step(actions)
    return _remember(bench, rows, settings)


def _likeliest(logs: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The likeliest answers, without those that look the same; none where one stands out."""
    order = np.argsort(-logs, kind="stable")
    order = order[np.isfinite(logs[order])]
    if np.exp(logs[order[0]]) > _DECIDED:
        return order[:0]
    distinct = np.append(True, np.abs(np.diff(logs[order])) > 1e-5)
    chosen: NDArray[np.int64] = order[distinct][:count]
    return chosen


def play_on(
    seat: Seat, asked: observation.Observation, row: int, action: int, rule: Rule
) -> Simulation:
    """A copy of the simulation in which the action was taken and a rule played on to the end."""
    copy, memory = seat.simulation.twin(), seat.memory.copy()
    observation.act(copy.snapshot, memory, asked, row, action)
    rules = rule.compiled()
    listing.decide(copy.snapshot, memory, engine.UNLIMITED, rules)
    engine.start_placed(copy.snapshot, copy.world)
    while (code := engine.simulate(copy.snapshot, copy.world, memory, rules)) == engine.LOG_FULL:
        copy.grow_log()
    if code == engine.STUCK:
        raise copy.stuck()
    return copy


def _gains(
    ends: list[Simulation], objective: NDArray[np.float32], now_s: float, horizon_s: float
) -> Floats:
    """What each answer gains over their mean, in shares of what is still to be paid. (answers,)."""
    paid = np.array([_to_pay(end, objective, now_s, horizon_s) for end in ends])
    usual = np.maximum(paid.mean(axis=0), _SMALL)
    usual[1] = 1.0
    shares = (paid.mean(axis=0) - paid) / usual
    return np.asarray(shares @ objective)


def _to_pay(
    end: Simulation, objective: NDArray[np.float32], now_s: float, horizon_s: float
) -> Floats:
    """By aim, what is paid from now on; later payments fade. (NUM_AIMS,)."""
    flows, snapshot = end.snapshot.workflows, end.snapshot
    begin_s = np.maximum(flows["arrival_s"], now_s)
    finish_s = np.maximum(flows["finish_s"], begin_s)

    def fade(time_s: Any) -> Any:
        return np.exp(-(time_s - now_s) / horizon_s)

    paid = np.zeros(len(objective))
    paid[0] = float((fade(begin_s) - fade(finish_s)).sum())
    weight = (4.0 - flows["priority"]) * np.isfinite(flows["deadline_s"])
    late = (flows["finish_s"] > flows["deadline_s"]) & (flows["finish_s"] >= now_s)
    paid[1] = float((weight * late * fade(finish_s)).sum() / max((weight * fade(begin_s)).sum(), 1))
    if objective[2] > 0.0:
        held = occupations.occupation(end.outcome("lookahead"))
        share = occupations.shares(held.request, snapshot.node_allocatable[held.node]).max(axis=1)
        usd = share * snapshot.nodes["price_usd_per_h"][held.node] * (held.end_s - held.start_s)
        later = held.end_s >= now_s
        paid[2] = float((usd[later] * fade(held.end_s[later])).sum())
    return paid


def _padded(values: NDArray[Any], size: int) -> NDArray[np.float32]:
    return np.pad(values, (0, size - len(values))).astype(np.float32)


def _remember(bench: Bench, rows: list[dict[str, Any]], settings: Lookahead) -> dict[str, float]:
    """Keep the rows of the last steps."""
    bench.kept["settings"] = settings
    memory: list[dict[str, torch.Tensor]] = bench.kept.setdefault("looked", [])
    if rows:
        memory.append(
            {name: torch.from_numpy(np.array([row[name] for row in rows])) for name in rows[0]}
        )
    del memory[: -settings.memory]
    if not memory:
        raise TrainingError("lookahead: no question was open; take more worlds or questions")
    gains = np.array([row["gains"] for row in rows]) if rows else np.zeros((1, 1))
    return {
        "questions": float(len(rows)),
        "size_of_gains": float(np.abs(gains).mean()),
        "best_gain": float(gains.max(axis=1).mean()),
        "gain_of_likeliest": float(gains[:, 0].mean()),
    }


def gradient(
    bench: Bench, state: Arrays, scale: float, seed: list[int]
) -> tuple[Arrays, dict[str, float]]:
    """Job: gradient of the cross-entropy to the improved answers over one batch."""
    settings: Lookahead = bench.kept["settings"]
    memory = bench.kept["looked"]
    columns = {name: torch.cat([part[name] for part in memory]) for name in memory[0]}
    size = len(columns["known"])
    rows = np.random.default_rng(seed).choice(size, min(size, settings.batch), replace=False)
    batch = {name: column[rows] for name, column in columns.items()}
    network = network_of(state, bench.spec.network)
    logs, _ = network(**inputs_of(batch))
    mine = logs.gather(1, batch["choices"]).clamp(min=-50.0)
    mine = torch.where(batch["known"], mine, torch.full_like(mine, -1e9))
    gains = (settings.eagerness * batch["gains"] / max(scale, _SMALL)).clamp(-_MOST, _MOST)
    wanted = torch.where(batch["known"], batch["old"] + gains, torch.full_like(mine, -1e9))
    target = torch.softmax(wanted, dim=1)
    now = torch.log_softmax(mine, dim=1)
    loss = -(target * now).sum(dim=1).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        gained = float((now.exp() * batch["gains"]).sum(dim=1).mean())
        before = torch.where(batch["known"], batch["old"], torch.full_like(mine, -1e9))
        gained_before = float((torch.softmax(before, dim=1) * batch["gains"]).sum(dim=1).mean())
    return gradients_of(network), {
        "loss": float(loss.detach()),
        "gained": gained - gained_before,
    }
