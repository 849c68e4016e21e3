"""Names, files and options become objects, or one line that says what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagsail import compose
from dagsail.compose import Overrides
from dagsail.domain.errors import FormatError, InputError, UnknownNameError
from dagsail.policies import DEFAULT_POLICIES, POLICIES
from dagsail.workloads.families import DEFAULT_COUNTS, FAMILIES
from dagsail.workloads.workload import Workload

FLOW = "kind: Workflow\nmetadata: {name: n}\nspec: {tasks: [{id: a, runtime: 1}]}\n"
NO_OVERRIDES = Overrides()


@pytest.fixture
def flow(tmp_path: Path) -> str:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW, encoding="utf-8")
    return str(path)


def ids(workload: Workload, seed: int = 0) -> list[str]:
    return [workflow.id for workflow in workload.pool(seed)]


def test_every_family_has_a_default_number() -> None:
    assert list(DEFAULT_COUNTS) == [entry.name for entry in FAMILIES]


def test_family_with_and_without_a_number() -> None:
    assert len(ids(compose.workload_of(["etl:3"]))) == 3
    assert compose.workload_of(["etl"]).families[0].count == DEFAULT_COUNTS["etl"]


def test_families_differ_between_seeds_and_files_do_not(flow: str) -> None:
    workload = compose.workload_of([flow, "etl:2"])
    one, same, other = workload.pool(1), workload.pool(1), workload.pool(2)
    assert one == same
    assert one[0] == other[0]
    assert one[1].tasks != other[1].tasks


def test_family_name_wins_over_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etl").write_text(FLOW, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert compose.workload_of(["etl:1"]).families
    assert ids(compose.workload_of(["./etl"])) == ["n"]


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("elt", "did you mean 'etl'?"),
        ("elt:4", "did you mean 'etl'?"),
        ("xyzzy", "families are etl, ai-training"),
        ("etl:0", "the number of workflows is '0'; allowed are 1 to 1000000"),
        ("etl:many", "the number of workflows is 'many'"),
        ("etl:-1", "the number of workflows is '-1'"),
        ("etl:", "the number of workflows is ''"),
        ("recipe:montage", "write recipe:NAME:TASKS"),
        ("recipe:montage:x", "the size is 'x'"),
        ("missing.yaml", "missing.yaml: no such file"),
        ("", "no file has such a name"),
        ("a\0b", "no file has such a name"),
    ],
)
def test_bad_source_is_named(argument: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        compose.workload_of([argument])
    assert said in str(caught.value)


def test_cluster_by_name_and_by_file(tmp_path: Path) -> None:
    assert len(compose.cluster_of("edge")[0].nodes) == 6
    native = tmp_path / "c.yaml"
    native.write_text(
        "kind: Cluster\nmetadata: {name: c}\n"
        "spec: {nodes: [{name: n, count: 2, allocatable: {cpu: 4, memory: 8Gi}}]}\n",
        encoding="utf-8",
    )
    assert len(compose.cluster_of(str(native))[0].nodes) == 2


def test_cluster_from_openb_machines_and_from_node_manifests(tmp_path: Path) -> None:
    table = tmp_path / "nodes.csv"
    table.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,64000,262144,2,T4\n", encoding="utf-8")
    cluster, warnings = compose.cluster_of(str(table))
    assert (cluster.nodes[0].num_gpus, len(warnings)) == (2, 1)
    manifest = tmp_path / "nodes.yaml"
    manifest.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: k}\n"
        "status: {allocatable: {cpu: '4', memory: 8Gi}}\n",
        encoding="utf-8",
    )
    assert compose.cluster_of(str(manifest))[0].nodes[0].name == "k"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("mixd", UnknownNameError, "did you mean 'mixed'?"),
        ("missing.yaml", FormatError, "no such file"),
        ("a\0b", InputError, ""),
    ],
)
def test_bad_cluster_is_named(name: str, kind: type[InputError], said: str) -> None:
    with pytest.raises(kind) as caught:
        compose.cluster_of(name)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["<adag/>", "hello", "a: b\n"])
def test_file_without_a_kind_is_no_cluster(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="accepted are Dagsail's own YAML"):
        compose.cluster_of(str(path))


def test_workflow_file_given_as_cluster(flow: str) -> None:
    with pytest.raises(FormatError, match="kind: found 'Workflow', expected 'Cluster'"):
        compose.cluster_of(flow)


def test_overrides_replace_what_the_scenario_file_says(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "kind: Scenario\nmetadata: {name: s}\n"
        "spec: {runtimes: {noise: 0.2}, arrivals: {kind: daily, load: 0.5}}\n",
        encoding="utf-8",
    )
    kept = compose.scenario_of(str(path), NO_OVERRIDES)
    assert (kept.name, kept.runtimes.noise, kept.arrivals.load) == ("s", 0.2, 0.5)
    given = Overrides(noise=0.0, load=0.9, num_workflows=7, fair_sharing=True)
    changed = compose.scenario_of(str(path), given)
    assert (changed.runtimes.noise, changed.arrivals.load) == (0.0, 0.9)
    assert (changed.arrivals.kind, changed.arrivals.num_workflows) == ("daily", 7)
    assert changed.transfers.fair_sharing


def test_a_load_makes_arrivals_poisson_unless_told_otherwise() -> None:
    assert compose.scenario_of(None, Overrides(load=0.9)).arrivals.kind == "poisson"
    burst = Overrides(load=0.9, arrivals="burst")
    assert compose.scenario_of(None, burst).arrivals.kind == "burst"


@pytest.mark.parametrize("kind", ["together", "recorded"])
def test_a_load_is_refused_where_it_has_no_effect(kind: str) -> None:
    with pytest.raises(InputError, match="--load has no effect"):
        compose.scenario_of(None, Overrides(load=0.9, arrivals=kind))


def test_files_come_together_and_families_over_time(flow: str) -> None:
    assert compose.setup_of([flow], "edge", None, NO_OVERRIDES).scenario.arrivals.kind == "together"
    assert compose.setup_of(["etl:2"], "edge", None, NO_OVERRIDES).scenario.arrivals.kind == (
        "poisson"
    )


def test_recorded_times_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW.replace("spec: {", "spec: {submittedAt: 5, "), encoding="utf-8")
    setup = compose.setup_of([str(path)], "edge", None, NO_OVERRIDES)
    assert setup.scenario.arrivals.kind == "recorded"


def test_few_files_over_time_are_drawn_repeatedly_and_it_is_said(flow: str) -> None:
    setup = compose.setup_of([flow], "edge", None, Overrides(load=0.8))
    arrivals = setup.arrivals(seed=0)
    assert len(arrivals) == 100
    assert len({arrival.workflow.id for arrival in arrivals}) == 100
    assert any("100 workflows are drawn from the 1 given" in line for line in setup.warnings)


def test_a_number_sets_the_size_of_families_without_one() -> None:
    setup = compose.setup_of(["etl", "streaming"], "mixed", None, Overrides(num_workflows=8))
    assert setup.sources == ("etl:2", "streaming:6")
    assert len(setup.arrivals(seed=0)) == 8


def test_a_number_draws_from_what_states_its_size(flow: str) -> None:
    setup = compose.setup_of([flow, "etl:2"], "mixed", None, Overrides(num_workflows=9))
    assert len(setup.arrivals(seed=0)) == 9


def test_files_of_one_name_get_ids_of_their_own(flow: str) -> None:
    setup = compose.setup_of([flow, flow], "edge", None, NO_OVERRIDES)
    assert [arrival.workflow.id for arrival in setup.arrivals(seed=0)] == ["n", "n#2"]


def test_policy_lists() -> None:
    assert compose.policy_names("heft, fifo,heft") == ("heft", "fifo")
    assert compose.policy_names("default") == DEFAULT_POLICIES
    assert compose.policy_names("all") == tuple(entry.name for entry in POLICIES)
    assert compose.policy_names("random,default")[0] == "random"


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_empty_policy_list_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="the list is empty"):
        compose.policy_names(text)


def test_unknown_policy_suggests_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'heft'"):
        compose.policy_names("fifo,hefd")


def test_reference_is_kubernetes_where_it_runs() -> None:
    assert compose.reference_of(["fifo", "kube-default@1.36"]) == "kube-default@1.36"
    assert compose.reference_of(["fifo", "heft"]) == "fifo"
