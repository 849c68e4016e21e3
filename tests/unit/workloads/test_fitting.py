"""Generated workflows are cut to a cluster too small for them, and keep their work."""

from __future__ import annotations

import numpy as np
import pytest

from dagsail.clusters.catalog import CLUSTERS, load_cluster
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.graph import critical_path_s, graph_of
from dagsail.domain.scenario import Arrivals
from dagsail.domain.snapshot import FINISHED
from dagsail.domain.units import GIB, GPU
from dagsail.domain.workflow import Dependency, Task, Workflow
from dagsail.policies import policy
from dagsail.workloads.families import FAMILIES
from dagsail.workloads.fitting import fitted
from dagsail.workloads.workload import FamilyShare, Workload

GPU_NODE = Node(name="g", allocatable={"cpu": 8000, "memory": 16 * GIB, GPU: 2})
SMALL = Cluster(
    name="small",
    nodes=(GPU_NODE, Node(name="c", allocatable={"cpu": 4000, "memory": 8 * GIB})),
)


def cut(task: Task) -> Task:
    (workflow,) = fitted([Workflow(id="w", tasks=(task,))], SMALL)
    return workflow.tasks[0]


def test_fewer_gpus_take_longer_in_proportion_and_memory_alone_does_not():
    wide = Task(id="t", runtime_s=60, request={"cpu": 8000, "memory": 32 * GIB, GPU: 4})
    assert cut(wide).request == {"cpu": 8000, "memory": 16 * GIB, GPU: 2}
    assert cut(wide).runtime_s == 120
    roomy = Task(id="t", runtime_s=60, request={"cpu": 1000, "memory": 32 * GIB})
    assert cut(roomy).request == {"cpu": 1000, "memory": 16 * GIB}
    assert cut(roomy).runtime_s == 60


def test_a_group_shrinks_to_the_workers_that_fit_at_once():
    group = Task(
        id="t",
        runtime_s=60,
        request={"cpu": 4000, "memory": GIB, GPU: 1},
        num_workers=6,
        comm_bytes=10**9,
    )
    assert cut(group).num_workers == 2
    assert cut(group).runtime_s == 180
    assert cut(group).comm_bytes == 10**9
    single = Task(
        id="t", runtime_s=60, request={"cpu": 8000, GPU: 2}, num_workers=2, comm_bytes=10**9
    )
    assert (cut(single).num_workers, cut(single).comm_bytes) == (1, 0)


def test_what_fits_is_left_as_it_is_and_what_no_node_has_is_left_to_be_refused():
    fits = Workflow(id="w", tasks=(Task(id="t", runtime_s=1, request={"cpu": 4000}),))
    alien = Workflow(id="x", tasks=(Task(id="t", runtime_s=1, request={"example.com/fpga": 1}),))
    one, other = fitted([fits, alien], SMALL)
    assert one is fits
    assert other is alien


@pytest.mark.parametrize("request_", [{}, {"cpu": 0, "memory": 0}])
def test_a_task_that_asks_for_nothing_fits(request_):
    barrier = Workflow(id="w", tasks=(Task(id="t", runtime_s=0, request=request_),))
    assert fitted([barrier], SMALL) == [barrier]


def test_an_amount_of_zero_asks_for_no_node_that_has_the_resource():
    task = Task(id="t", runtime_s=60, request={"cpu": 16000, "example.com/fpga": 0})
    assert (cut(task).request["cpu"], cut(task).runtime_s) == (8000, 120)


def test_the_deadline_is_stretched_as_the_critical_path_is():
    tasks = (
        Task(id="a", runtime_s=60, request={"cpu": 1000}),
        Task(id="b", runtime_s=60, request={"cpu": 1000, GPU: 4}),
    )
    workflow = Workflow(id="w", tasks=tasks, dependencies=(Dependency("a", "b"),), deadline_s=240)
    (longer,) = fitted([workflow], SMALL)
    assert longer.tasks[1].runtime_s == 120
    assert longer.deadline_s == 360


@pytest.mark.parametrize("family", [entry.name for entry in FAMILIES])
@pytest.mark.parametrize(
    "cluster", [entry.name for entry in CLUSTERS if entry.name != "homogeneous"]
)
def test_every_family_runs_on_every_built_in_cluster_with_gpus(family, cluster):
    nodes = load_cluster(cluster)
    workload = Workload(families=(FamilyShare(family, 30),))
    arrivals = workload.arrivals(Arrivals(kind="together"), nodes, 5).arrivals
    run = Simulation(arrivals, nodes, seed=5).run(policy("fifo"))
    assert (run.snapshot.tasks["state"] == FINISHED).all()
    for arrival in arrivals:
        if arrival.workflow.deadline_s is not None:
            seconds = np.array([task.runtime_s for task in arrival.workflow.tasks])
            assert arrival.workflow.deadline_s > critical_path_s(
                graph_of(arrival.workflow), seconds
            )


def test_the_warning_names_the_families_that_were_cut():
    workload = Workload(families=(FamilyShare("etl", 50), FamilyShare("ai-training", 50)))
    assert workload.cut_families(load_cluster("edge")) == ["ai-training"]
    assert workload.cut_families(load_cluster("mixed")) == []
