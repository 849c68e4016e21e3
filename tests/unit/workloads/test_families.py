from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dagsail.clusters.catalog import load_cluster
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import UnknownNameError
from dagsail.domain.units import CPU, GIB, GPU, MEMORY
from dagsail.domain.workflow import Priority, Task, Workflow
from dagsail.workloads.families import FAMILIES, ai_training, etl, microservices, mixed, streaming
from dagsail.workloads.families.dag_builder import DagBuilder, Image, Program, request
from dagsail.workloads.families.draws import LogNormal, pick
from dagsail.workloads.families.urgency import TENANTS

NAMES = ["etl", "ai-training", "microservices", "streaming", "mixed"]


def many(name: str, count: int = 60, seed: int = 1) -> list[Workflow]:
    family = FAMILIES.get(name).load()
    workflows: list[Workflow] = family.generate_many(count, np.random.default_rng(seed))
    return workflows


def parents_of(workflow: Workflow) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = {task.id: [] for task in workflow.tasks}
    for edge in workflow.dependencies:
        parents[edge.child].append(edge.parent)
    return parents


def critical_path_s(workflow: Workflow) -> float:
    finish: dict[str, float] = {}
    parents = parents_of(workflow)
    for task in workflow.tasks:
        ready = max((finish[parent] for parent in parents[task.id]), default=0.0)
        finish[task.id] = ready + task.runtime_s
    return max(finish.values())


def all_tasks(name: str) -> list[Task]:
    return [task for workflow in many(name) for task in workflow.tasks]


def fits(task: Task, cluster: Cluster) -> bool:
    """Whether all workers of the task can run at once on the empty cluster."""
    places = sum(
        min(node.allocatable.get(r, 0) // amount for r, amount in task.request.items())
        for node in cluster.nodes
    )
    return places >= task.num_workers


def test_registers_the_five_families_in_order() -> None:
    assert [entry.name for entry in FAMILIES] == NAMES
    assert all("\n" not in entry.summary and len(entry.summary) <= 90 for entry in FAMILIES)


def test_suggests_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown family 'ai_training'.*'ai-training'"):
        FAMILIES.get("ai_training")


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_gives_the_same_workflows(name: str) -> None:
    assert many(name, 20) == many(name, 20)
    assert many(name, 20) != many(name, 20, seed=2)


@pytest.mark.parametrize("name", NAMES)
def test_more_workflows_do_not_change_the_first_ones(name: str) -> None:
    assert many(name, 12)[:5] == many(name, 5)


def test_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "import hashlib, numpy as np\n"
        "from dagsail.workloads.families import FAMILIES\n"
        "for entry in FAMILIES:\n"
        "    made = entry.load().generate_many(10, np.random.default_rng(3))\n"
        "    print(entry.name, hashlib.sha256(repr(made).encode()).hexdigest())\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0].count(b"\n") == len(NAMES)
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_deadlines_leave_time_to_run(name: str) -> None:
    workflows = many(name)
    assert len({workflow.id for workflow in workflows}) == len(workflows)
    for workflow in workflows:
        assert workflow.tenant in dict(TENANTS)
        assert workflow.family == name or name == "mixed"
        assert workflow.deadline_s is not None
        assert workflow.deadline_s > 0
        if workflow.family != "streaming":  # whose windows may be too large for their period
            assert workflow.deadline_s > 1.49 * critical_path_s(workflow)


@pytest.mark.parametrize("name", NAMES)
def test_every_task_has_a_kind_an_image_a_runtime_and_a_request(name: str) -> None:
    sizes: dict[str, int] = {}
    for task in all_tasks(name):
        assert task.kind
        assert task.image
        assert task.runtime_s > 0
        assert task.request[CPU] > 0
        assert task.request[MEMORY] > 0
        assert sizes.setdefault(task.image, task.image_bytes) == task.image_bytes > 0


@pytest.mark.parametrize("name", NAMES)
def test_an_edge_carries_no_more_than_its_parent_writes(name: str) -> None:
    for workflow in many(name):
        written = {task.id: task.output_bytes for task in workflow.tasks}
        for edge in workflow.dependencies:
            assert edge.data_bytes <= written[edge.parent]


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("etl", "edge"),
        ("microservices", "edge"),
        ("streaming", "edge"),
        ("etl", "mixed"),
        ("ai-training", "mixed"),
        ("mixed", "mixed"),
        ("mixed", "large"),
    ],
)
def test_every_task_fits_the_built_in_cluster(name: str, cluster: str) -> None:
    nodes = load_cluster(cluster)
    assert [task.id for task in all_tasks(name) if not fits(task, nodes)] == []


def test_small_families_ask_for_at_most_3_cores_and_6_gib() -> None:
    for name in ("etl", "microservices", "streaming"):
        assert max(task.request[CPU] for task in all_tasks(name)) <= 3000
        assert max(task.request[MEMORY] for task in all_tasks(name)) <= 6 * GIB


def test_etl_extracts_joins_and_loads() -> None:
    for workflow in many("etl"):
        parents = parents_of(workflow)
        kinds = {task.id: task.kind for task in workflow.tasks}
        count = Counter(kinds.values())
        assert count["extract"] == count["transform"] >= 3
        assert count["publish"] == 1
        joins = [name for name, kind in kinds.items() if kind == "join"]
        assert len({kinds[parent] for join in joins for parent in parents[join]}) <= 2
        assert all(len(parents[join]) >= 2 for join in joins)
        assert [name for name, above in parents.items() if not above] == [
            name for name, kind in kinds.items() if kind == "extract"
        ]


def test_etl_is_mostly_tens_of_tasks_with_some_wide_ones_and_gigabytes_on_edges() -> None:
    workflows = many("etl", 150)
    sizes = sorted(len(workflow.tasks) for workflow in workflows)
    assert 20 <= sizes[75] <= 60
    wide = [w for w in workflows if Counter(t.kind for t in w.tasks)["extract"] >= 100]
    assert 3 <= len(wide) <= 30  # 8 % of 150, and a few that are wide by chance
    moved = sorted(sum(e.data_bytes for e in w.dependencies) for w in workflows)
    assert 5e9 < moved[75] < 100e9


def test_etl_joins_split_what_their_parents_write() -> None:
    parameters = replace(
        etl.EtlParameters(),
        num_tables=((2, 1.0),),
        partitions=LogNormal(4, 0, 4, 4),
        wide_ratio=0,
        dimension_ratio=(0.5, 0.5),
        partition_bytes=LogNormal(1e9, 0, 1e9, 1e9),
        partition_sigma=0,
        runtime_sigma=0,
    )
    workflow = etl.generate(parameters, np.random.default_rng(0), 7)
    assert workflow.id == "etl-0007"
    # 4 fact and 2 dimension partitions, 2 joins, 1 aggregate, 1 load, 1 publish
    kinds = Counter(task.kind for task in workflow.tasks)
    assert kinds == {
        "extract": 6,
        "transform": 6,
        "join": 2,
        "aggregate": 1,
        "load": 1,
        "publish": 1,
    }
    by_id = {task.id: task for task in workflow.tasks}
    assert by_id["extract-0"].runtime_s == pytest.approx(1e9 / 16e6)
    # each join reads half of 6 x 0.6 GB at 8 MB/s
    assert by_id["join-1"].runtime_s == pytest.approx(1.8e9 / 8e6)
    into_join = [e.data_bytes for e in workflow.dependencies if e.child == "join-1"]
    assert into_join == [300_000_000] * 6


def test_ai_training_uses_1_to_8_gpus_at_most_4_a_worker() -> None:
    trainings = [task for task in all_tasks("ai-training") if task.kind == "train"]
    gpus = Counter(task.num_workers * task.request[GPU] for task in trainings)
    assert set(gpus) <= {1, 2, 4, 8}
    assert gpus[1] > gpus[8]
    assert max(task.request[GPU] for task in trainings) == 4
    for task in trainings:
        assert 1800 <= task.runtime_s <= 21600
        assert task.output_bytes >= 0.1e9
        assert (task.comm_bytes > 0) == (task.num_workers > 1)
        assert task.request[CPU] <= 8000
        assert task.request[MEMORY] <= 48 * GIB


def test_ai_training_trains_once_or_sweeps() -> None:
    sweeps = 0
    for workflow in many("ai-training", 100):
        kinds = Counter(task.kind for task in workflow.tasks)
        assert kinds["prepare"] == kinds["tokenize"] >= 2
        assert kinds["register"] == kinds["pack"] == 1
        assert 1 <= kinds["evaluate"] <= 3
        if kinds["trial"]:
            sweeps += 1
            assert 4 <= kinds["trial"] <= 12
            assert kinds["select"] == 1
        assert kinds["train"] == (0 if kinds["trial"] else 1)
    assert 15 <= sweeps <= 45  # 30 %


def test_a_minority_prefers_gpu_models_without_demanding_them() -> None:
    workflows = many("ai-training", 100)
    preferring = [w for w in workflows if any(task.placement.preferred for task in w.tasks)]
    assert 20 <= len(preferring) <= 50  # 34 %
    assert not any(task.placement.gpu_models for w in workflows for task in w.tasks)


def test_microservices_are_call_trees_with_one_response() -> None:
    for workflow in many("microservices"):
        parents = parents_of(workflow)
        *calls, respond = workflow.tasks
        assert [task.kind for task in calls if not parents[task.id]] == ["gateway"]
        assert all(len(parents[task.id]) == 1 for task in calls[1:])
        assert respond.kind == "respond"
        with_children = {edge.parent for edge in workflow.dependencies}
        assert {task.id for task in workflow.tasks} - with_children == {respond.id}
        assert all(task.placement.near_parents for task in workflow.tasks)


def test_microservices_are_short_small_and_due_within_seconds() -> None:
    for workflow in many("microservices", 200):
        assert workflow.start_deadline_s is not None
        assert workflow.start_deadline_s <= 10
        assert workflow.deadline_s is not None
        assert workflow.deadline_s < 300
        for task in workflow.tasks:
            assert 0.1 <= task.runtime_s <= 10
            assert 100 <= task.request[CPU] <= 1000


def test_call_trees_keep_to_their_depth() -> None:
    parameters = replace(
        microservices.MicroserviceParameters(), num_calls=LogNormal(30, 0, 30, 30), max_depth=2
    )
    workflow = microservices.generate(parameters, np.random.default_rng(0), 0)
    callers = {e.parent for e in workflow.dependencies if e.child != "respond-0"}
    assert len(workflow.tasks) == 31
    assert callers == {"gateway-0"}


def test_streaming_windows_come_once_a_period_and_are_due_within_it() -> None:
    pipelines = streaming.StreamingParameters().pipelines
    windows = many("streaming", 3 * len(pipelines))
    for index, window in enumerate(windows):
        pipeline = pipelines[index % len(pipelines)]
        assert window.deadline_s == pipeline.period_s
        assert window.submitted_s == (index // len(pipelines) + 1) * pipeline.period_s
        kinds = Counter(task.kind for task in window.tasks)
        assert kinds == {
            f"{pipeline.name}-ingest": pipeline.num_partitions,
            f"{pipeline.name}-aggregate": pipeline.num_key_ranges,
            f"{pipeline.name}-sink": 1,
        }


def test_most_streaming_windows_can_make_it() -> None:
    windows = many("streaming", 200)
    late = [w for w in windows if critical_path_s(w) > (w.deadline_s or 0)]
    assert len(late) <= 20


def test_p0_must_start_within_5_minutes_wherever_it_runs() -> None:
    for name in NAMES:
        urgent = [w for w in many(name, 200) if w.priority is Priority.P0]
        assert urgent
        assert all(w.start_deadline_s is not None for w in urgent)
        assert all((w.start_deadline_s or 0) <= 300 for w in urgent)
    assert {w.start_deadline_s for w in many("etl", 200) if w.priority is Priority.P0} == {300}


def test_mixed_keeps_the_stated_shares_in_every_hundred() -> None:
    workflows = many("mixed", 300)
    for first in (0, 100, 200):
        count = Counter(workflow.family for workflow in workflows[first : first + 100])
        for name, share in mixed.MixedParameters().shares:
            assert count[name] == pytest.approx(100 * share, abs=2)
    assert all(workflow.submitted_s is None for workflow in workflows)


def test_no_family_dominates_the_work_of_mixed() -> None:
    core_seconds: Counter[str] = Counter()
    for workflow in many("mixed", 300):
        for task in workflow.tasks:
            work = task.runtime_s * task.request[CPU] * task.num_workers
            core_seconds[workflow.family] += int(work)
    assert max(core_seconds.values()) < 0.8 * core_seconds.total()


def test_mixed_refuses_a_share_of_an_unknown_family() -> None:
    parameters = replace(mixed.MixedParameters(), shares=(("batch", 1.0),))
    with pytest.raises(ValueError, match="no 'batch'"):
        mixed.generate(parameters, np.random.default_rng(0), 0)


def test_log_normal_has_its_median_and_keeps_its_range() -> None:
    rng = np.random.default_rng(5)
    draws = [LogNormal(10, 1, 2, 50).draw(rng) for _ in range(2000)]
    assert np.median(draws) == pytest.approx(10, rel=0.1)
    assert min(draws) == 2
    assert max(draws) == 50


def test_pick_follows_the_shares_even_if_they_sum_to_less_than_1() -> None:
    rng = np.random.default_rng(5)
    count = Counter(pick(rng, (("a", 0.75), ("b", 0.25))) for _ in range(2000))
    assert count["a"] == pytest.approx(1500, abs=80)
    assert pick(rng, (("only", 0.0),)) == "only"


def test_dag_builder_follows_the_longest_chain() -> None:
    program = Program(kind="step", image=Image("i", 1), request=request(100, 5))
    dag = DagBuilder()
    assert dag.critical_path_s == 0
    first = dag.add(program, runtime_s=2, output_bytes=90)
    second = dag.add(program, runtime_s=5)
    last = dag.add(program, runtime_s=1, after=[first, second], share=1 / 3)
    assert (first, second, last) == ("step-0", "step-1", "step-2")
    assert dag.critical_path_s == 6
    assert dag.leaves() == [last]
    assert dag.output_bytes([first, second]) == 90
    workflow = dag.build(
        "w", "f", tenant="t", priority=Priority.P1, deadline_s=9, start_deadline_s=None
    )
    assert [(e.parent, e.child, e.data_bytes) for e in workflow.dependencies] == [
        ("step-0", "step-2", 30),
        ("step-1", "step-2", 0),
    ]


def test_parameters_can_be_changed() -> None:
    parameters = replace(ai_training.AiTrainingParameters(), sweep_ratio=1.0)
    workflow = ai_training.generate(parameters, np.random.default_rng(0), 3)
    assert any(task.kind == "trial" for task in workflow.tasks)
