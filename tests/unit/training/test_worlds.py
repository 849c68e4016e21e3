"""The worlds of training: wide stages among the families."""

from __future__ import annotations

import numpy as np

from dagsail.domain.workflow import Workflow
from dagsail.training.settings import WorldSettings
from dagsail.training.stage_graphs import MOST_STAGES, MOST_TASKS, stage_graphs
from dagsail.training.worlds import WIDE_COUNT, Worlds


def widths(workflow: Workflow) -> dict[str, int]:
    """Tasks of each stage."""
    counts: dict[str, int] = {}
    for task in workflow.tasks:
        stage = task.id.partition("[")[0]
        if not stage.endswith("-done"):
            counts[stage] = counts.get(stage, 0) + 1
    return counts


def test_stage_graphs_are_wide_connected_and_the_same_each_time() -> None:
    drawn = stage_graphs(3, 60)
    assert drawn == stage_graphs(3, 60)
    assert drawn != stage_graphs(4, 60)
    most = [max(widths(workflow).values()) for workflow in drawn]
    assert max(most) == MOST_TASKS
    assert min(most) < 20
    for workflow in drawn:
        stages = widths(workflow)
        assert len(stages) <= MOST_STAGES
        children = {one.child for one in workflow.dependencies}
        has_parent = {child.partition("[")[0] for child in children if not child.endswith("-done")}
        assert set(stages) - has_parent == {"s0"}  # every other stage waits for one before it


def test_the_share_of_wide_worlds_is_as_set_and_moves_no_other() -> None:
    some, none = Worlds(WorldSettings(wide_ratio=0.3)), Worlds(WorldSettings(wide_ratio=0.0))
    wide = []
    for episode in range(40):
        here, there = some.simulation(episode), none.simulation(episode)
        is_wide = here.arrivals[0].workflow.family == "stages"
        wide.append(is_wide)
        if is_wide:
            assert len(here.arrivals) == WIDE_COUNT
            assert (here.snapshot.node_free == there.snapshot.node_free).all()
        else:
            assert here.snapshot.tasks.tobytes() == there.snapshot.tasks.tobytes()
    assert 6 <= np.sum(wide) <= 18


def test_a_curriculum_holds_for_wide_worlds_too() -> None:
    snapshot = Worlds(WorldSettings(wide_ratio=1.0)).simulation(1, max_tasks=30).snapshot
    assert np.bincount(snapshot.tasks["workflow"]).max() <= 30
