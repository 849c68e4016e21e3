from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dagsail.clusters.catalog import load_cluster
from dagsail.domain.cluster import ZONE_LABEL, Cluster, Node
from dagsail.domain.errors import ScenarioError
from dagsail.domain.placement import Placement, Requirement, Term
from dagsail.domain.scenario import ArrivalKind, Arrivals
from dagsail.domain.units import CPU, GIB, GPU, MEMORY
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.workloads.arrivals import (
    ArrivalPlan,
    burst,
    daily,
    poisson,
    recorded,
    schedule_arrivals,
    together,
)
from dagsail.workloads.families import FAMILIES
from dagsail.workloads.offered_load import busy_seconds, rate_for_load

NODE = Node(name="n", allocatable={CPU: 4000, MEMORY: 8 * GIB})
CLUSTER = Cluster(name="c", nodes=(NODE,))


def workflow(name: str, runtime_s: float = 10, submitted_s: float | None = None) -> Workflow:
    task = Task(id="t", runtime_s=runtime_s, request={CPU: 1000, MEMORY: GIB})
    return Workflow(id=name, tasks=(task,), submitted_s=submitted_s)


def pool(count: int) -> list[Workflow]:
    return [workflow(f"w{index}") for index in range(count)]


def times(arrivals: list[Arrival]) -> np.ndarray:
    return np.array([arrival.time_s for arrival in arrivals])


def plan(
    workflows: list[Workflow],
    settings: Arrivals,
    *,
    cluster: Cluster = CLUSTER,
    seed: int = 1,
    default_kind: ArrivalKind = "poisson",
) -> ArrivalPlan:
    rng = np.random.default_rng(seed)
    return schedule_arrivals(workflows, settings, cluster, rng, default_kind=default_kind)


def test_together_submits_all_at_once_in_order() -> None:
    assert together(pool(3)) == [Arrival(0.0, item) for item in pool(3)]


def test_poisson_has_its_rate_and_exponential_gaps() -> None:
    gaps = np.diff(times(poisson(pool(4000), 0.5, np.random.default_rng(2))), prepend=0)
    # standard error of the mean: 2 / sqrt(4000) = 0.03
    assert gaps.mean() == pytest.approx(2, abs=0.15)
    # an exponential distribution has a standard deviation equal to its mean
    assert gaps.std() == pytest.approx(2, abs=0.25)


def test_daily_has_its_peak_at_6_h_and_its_trough_at_18_h() -> None:
    # ten days at 100 an hour
    moments = times(daily(pool(24_000), 100 / 3600, np.random.default_rng(3)))
    assert moments[-1] == pytest.approx(10 * 86400, rel=0.03)
    hours = np.bincount((moments[moments < 10 * 86400] // 3600).astype(int) % 24, minlength=24) / 10
    peak, trough = hours[4:8].mean(), hours[16:20].mean()
    # mean of 1 + 0.5 sin over the four hours around the peak: 1.477
    assert peak == pytest.approx(147.7, rel=0.05)
    assert trough == pytest.approx(52.3, rel=0.08)


def test_burst_is_17_times_faster_and_holds_its_share() -> None:
    rng = np.random.default_rng(4)
    moments = times(burst(pool(10_000), 0.1, rng, factor=17, ratio=0.1))
    gaps = np.diff(moments, prepend=0)
    inside = gaps[4500:5500]  # a tenth, in the middle
    outside = np.concatenate([gaps[:4500], gaps[5500:]])
    assert outside.mean() / inside.mean() == pytest.approx(17, rel=0.12)
    assert outside.mean() == pytest.approx(10, rel=0.05)


def test_recorded_counts_from_the_earliest() -> None:
    items = [workflow("late", submitted_s=130), workflow("early", submitted_s=100)]
    assert [(a.time_s, a.workflow.id) for a in recorded(items)] == [(0, "early"), (30, "late")]
    assert [a.workflow.id for a in recorded(items, 1)] == ["early"]


def test_recorded_names_a_workflow_without_a_time() -> None:
    with pytest.raises(ScenarioError, match="'b' has no recorded submission time"):
        recorded([workflow("a", submitted_s=0), workflow("b")])


def test_recorded_refuses_more_than_there_are() -> None:
    with pytest.raises(ScenarioError, match="num_workflows is 3, but only 1 are recorded"):
        recorded([workflow("a", submitted_s=0)], 3)


def test_repeated_ids_are_numbered_around_taken_ones() -> None:
    items = [workflow("a"), workflow("a"), workflow("a#2"), workflow("a")]
    assert [a.workflow.id for a in together(items)] == ["a", "a#3", "a#2", "a#4"]


def test_busy_seconds_by_hand() -> None:
    # two nodes of 4 cores, speeds 1 and 2: a task of 60 s takes 60 or 30, 45 on average
    nodes = (
        Node(name="a", allocatable={CPU: 4000, MEMORY: 8 * GIB}),
        Node(name="b", allocatable={CPU: 4000, MEMORY: 8 * GIB}, speed=2),
    )
    item = Workflow(
        id="w",
        tasks=(
            Task(id="x", runtime_s=60, request={CPU: 2000, MEMORY: GIB}),
            Task(id="y", runtime_s=60, request={CPU: 1000, MEMORY: GIB}, num_workers=2),
        ),
    )
    busy = busy_seconds([item, item], Cluster(name="c", nodes=nodes))
    # cpu: 45 s x (2 + 2 x 1) cores of 8; memory: 45 s x 3 GiB of 16
    assert busy == pytest.approx({CPU: 22.5, MEMORY: 8.4375})


def test_busy_seconds_counts_only_nodes_that_a_task_may_run_on() -> None:
    fast = Node(
        name="fast",
        allocatable={CPU: 8000, MEMORY: 8 * GIB, GPU: 2},
        labels={ZONE_LABEL: "z", "nvidia.com/gpu.product": "A100"},
        speed=4,
        gpu_speed=2,
    )
    cluster = Cluster(name="c", nodes=(NODE, fast))
    zone = Term((Requirement(ZONE_LABEL, "In", ("z",)),))

    def cpu_seconds(task: Task) -> float:
        # of 12 cores
        return busy_seconds([Workflow(id="w", tasks=(task,))], cluster)[CPU] * 12

    one_core = {CPU: 1000}
    assert cpu_seconds(Task(id="t", runtime_s=8, request=one_core)) == pytest.approx(5)
    assert cpu_seconds(Task(id="t", runtime_s=8, request={CPU: 5000})) == pytest.approx(10)
    assert cpu_seconds(Task(id="t", runtime_s=8, request={CPU: 1000, GPU: 1})) == pytest.approx(4)
    for placement in (
        Placement(node_selector=((ZONE_LABEL, "z"),)),
        Placement(required=(zone,)),
        Placement(gpu_models=("A100",)),
    ):
        task = Task(id="t", runtime_s=8, request=one_core, placement=placement)
        assert cpu_seconds(task) == pytest.approx(2)
    by_type = Task(id="t", runtime_s=8, runtime_s_by_node_type={"standard": 100}, request=one_core)
    assert cpu_seconds(by_type) == pytest.approx(100)
    nowhere = Task(id="t", runtime_s=8, request={CPU: 99_000})
    assert cpu_seconds(nowhere) == pytest.approx(99 * 5)


def test_gpu_work_counts_only_gpus() -> None:
    gpu_node = Node(name="g", allocatable={CPU: 100_000, MEMORY: 800 * GIB, GPU: 4})
    cluster = Cluster(name="c", nodes=(NODE, gpu_node))
    item = Workflow(
        id="w", tasks=(Task(id="t", runtime_s=100, request={CPU: 1000, MEMORY: GIB, GPU: 2}),)
    )
    rate, dominating = rate_for_load([item], cluster, 0.8)
    # 200 GPU seconds of 4 GPUs: 50 s a workflow
    assert dominating == GPU
    assert rate == pytest.approx(0.8 / 50)


def test_a_pool_without_work_sets_no_rate() -> None:
    with pytest.raises(ScenarioError, match="a load cannot set their rate"):
        rate_for_load([workflow("w", runtime_s=0)], CLUSTER, 0.8)
    with pytest.raises(ScenarioError, match="a load cannot set their rate"):
        plan([workflow("w", runtime_s=0)], Arrivals(kind="burst"))


@pytest.mark.parametrize("kind", ["poisson", "daily", "burst"])
def test_random_kinds_take_each_once_in_random_order(kind: ArrivalKind) -> None:
    drawn = [a.workflow.id for a in plan(pool(50), Arrivals(kind=kind)).arrivals]
    assert sorted(drawn) == sorted(item.id for item in pool(50))
    assert drawn != [item.id for item in pool(50)]


@pytest.mark.parametrize("kind", ["together", "poisson", "daily", "burst"])
def test_a_number_draws_with_replacement_and_keeps_ids_unique(kind: ArrivalKind) -> None:
    arrivals = plan(pool(5), Arrivals(kind=kind, num_workflows=200)).arrivals
    ids = [a.workflow.id for a in arrivals]
    assert len(set(ids)) == 200
    drawn = Counter(name.split("#")[0] for name in ids)
    assert set(drawn) == {item.id for item in pool(5)}
    assert min(drawn.values()) >= 20
    assert ids.count("w0") == ids.count("w0#2") == 1
    assert list(arrivals) == sorted(arrivals, key=lambda a: a.time_s)


@pytest.mark.parametrize("kind", ["poisson", "daily", "burst"])
def test_same_seed_gives_the_same_plan(kind: ArrivalKind) -> None:
    settings = Arrivals(kind=kind, num_workflows=40)
    assert plan(pool(9), settings) == plan(pool(9), settings)
    assert plan(pool(9), settings) != plan(pool(9), settings, seed=2)


def test_the_offered_load_is_reached() -> None:
    result = plan(pool(7), Arrivals(load=0.6, num_workflows=3000))
    # 10 core seconds of 4 cores: 2.5 s a workflow
    assert result.rate_per_s == pytest.approx(0.24)
    assert result.dominating == CPU
    assert result.load_by_resource == pytest.approx({CPU: 0.6, MEMORY: 0.3})
    core_seconds = sum(10 for _ in result.arrivals)
    assert core_seconds / 4 / result.arrivals[-1].time_s == pytest.approx(0.6, rel=0.08)


@pytest.mark.parametrize("name", [entry.name for entry in FAMILIES])
def test_every_family_reaches_its_load_on_the_mixed_cluster(name: str) -> None:
    cluster = load_cluster("mixed")
    workflows = FAMILIES.get(name).load().generate_many(60, np.random.default_rng(1))
    result = plan(workflows, Arrivals(load=0.9), cluster=cluster)
    assert result.load_by_resource[result.dominating] == pytest.approx(0.9)
    assert max(result.load_by_resource.values()) == pytest.approx(0.9)
    assert result.dominating == (GPU if name in {"ai-training", "mixed"} else CPU)


def test_auto_is_what_the_caller_says() -> None:
    assert plan(pool(3), Arrivals(), default_kind="together").kind == "together"
    assert plan(pool(3), Arrivals(kind="burst"), default_kind="together").kind == "burst"
    with pytest.raises(ScenarioError, match="kind is 'auto'"):
        plan(pool(3), Arrivals(), default_kind="auto")


def test_a_plan_of_recorded_arrivals_states_its_rate() -> None:
    items = [workflow(f"w{i}", submitted_s=1000 + 5 * i) for i in range(11)]
    result = plan(items, Arrivals(kind="recorded"))
    assert result.rate_per_s == pytest.approx(0.2)
    assert result.load_by_resource == pytest.approx({CPU: 0.5, MEMORY: 0.25})


def test_a_plan_of_all_together_has_no_load() -> None:
    result = plan(pool(3), Arrivals(kind="together"))
    assert (result.rate_per_s, result.load_by_resource, result.dominating) == (0, {}, CPU)
    single = plan([workflow("w", submitted_s=7)], Arrivals(kind="recorded"))
    assert (single.rate_per_s, single.load_by_resource) == (0, {})


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(ScenarioError, match="no workflow to submit"):
        plan([], Arrivals())
