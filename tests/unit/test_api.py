"""What `import dagsail` offers."""

from __future__ import annotations

from pathlib import Path

import pytest

import dagsail
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.errors import InputError, OutputError

FLOW = """\
kind: Workflow
metadata: {name: chain}
spec:
  tasks:
    - {id: a, runtime: 10, request: {cpu: 1, memory: 1Gi}}
    - {id: b, runtime: 20, request: {cpu: 1, memory: 1Gi}, dependsOn: [a]}
"""
PAIR = Cluster(
    name="pair",
    nodes=tuple(Node(name=n, allocatable={"cpu": 2000, "memory": 2**33}) for n in ("m", "n")),
)


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW, encoding="utf-8")
    return path


def test_everything_offered_is_there() -> None:
    assert set(dagsail.__all__) <= set(dir(dagsail))
    for name in dagsail.__all__:
        assert callable(getattr(dagsail, name))
    with pytest.raises(AttributeError, match="no attribute 'xyzzy'"):
        _ = dagsail.xyzzy


def test_five_lines(flow: Path, tmp_path: Path) -> None:
    workload = dagsail.read(flow)
    run = dagsail.simulate(workload, cluster=PAIR, policy="heft")
    assert dagsail.metrics(run)["makespan_s"] == 30.0
    dagsail.plot(run, tmp_path / "gantt.svg")
    assert (tmp_path / "gantt.svg").read_text(encoding="utf-8").startswith("<svg")


def test_plot_refuses_an_unknown_kind_of_picture(flow: Path, tmp_path: Path) -> None:
    run = dagsail.simulate(dagsail.read(flow), cluster=PAIR)
    with pytest.raises(OutputError):
        dagsail.plot(run, tmp_path / "gantt.bmp")


def test_compare_with_a_scenario(flow: Path) -> None:
    scenario = dagsail.scenario(noise=0.5, arrivals="together")
    told: list[tuple[int, int]] = []
    found = dagsail.compare(
        dagsail.read(flow),
        PAIR,
        ["fifo", "heft"],
        scenario,
        seeds=3,
        progress=lambda done, total, _: told.append((done, total)),
    )
    assert found.policies == ("fifo", "heft")
    assert found.reference == "fifo"
    assert told[-1] == (6, 6)
    assert len(set(found.values("fifo", "makespan_s"))) == 3


def test_cluster_by_name() -> None:
    assert dagsail.cluster("edge").name == "edge"


@pytest.mark.parametrize("sources", [(), ("missing.yaml",), ("elt",)])
def test_read_names_what_is_wrong(sources: tuple[str, ...]) -> None:
    with pytest.raises(InputError):
        dagsail.read(*sources)
