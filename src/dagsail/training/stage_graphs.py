"""Stage graphs: workflows of wide stages of alike tasks, as analytics on Spark or MapReduce has.

The families hold hundreds of tasks at most, here one stage may: a policy that never saw that learns
odd things about tasks with many children.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dagsail.domain.units import CPU, GIB, MEMORY
from dagsail.domain.workflow import Priority, Workflow
from dagsail.workloads.stages import Stage, expand

MOST_STAGES: Final = 12
MOST_TASKS: Final = 300
"""Of one stage."""
_MEDIAN_TASKS: Final = 12.0
_MEDIAN_S: Final = 20.0
_SINGLE_RATIO: Final = 0.3
"""Share of stages that are one task, such as a scan of what there is or a last sum."""


def stage_graphs(seed: int, count: int) -> tuple[Workflow, ...]:
    """So many workflows of a seed."""
    rng = np.random.default_rng([seed, 0x57])
    return tuple(_stage_graph(rng, f"stages-{number:04d}") for number in range(count))


def _stage_graph(rng: np.random.Generator, name: str) -> Workflow:
    scale = float(np.exp(rng.normal(0.0, 1.0)))
    stages = []
    for number in range(int(rng.integers(1, MOST_STAGES + 1))):
        # Few parents, mostly recent ones: joins of chains.
        most = min(number, 1 + int(rng.random() < 0.3))
        parents = {number - 1 - min(int(rng.geometric(0.5)) - 1, number - 1) for _ in range(most)}
        width = min(1 + int(rng.lognormal(np.log(_MEDIAN_TASKS * scale), 1.0)), MOST_TASKS)
        stages.append(
            Stage(
                name=f"s{number}",
                num_tasks=1 if rng.random() < _SINGLE_RATIO else width,
                runtime_s=float(rng.lognormal(np.log(_MEDIAN_S), 1.0)),
                kind=f"stage-{rng.integers(20)}",
                request={
                    CPU: int(rng.choice((1000, 2000, 4000))),
                    MEMORY: int(rng.choice((1, 2, 8))) * GIB,
                },
                parents=tuple(f"s{parent}" for parent in sorted(parents)),
            )
        )
    tasks, dependencies = expand(stages)
    return Workflow(
        id=name,
        tasks=tasks,
        dependencies=dependencies,
        priority=Priority(int(rng.integers(4))),
        family="stages",
    )
