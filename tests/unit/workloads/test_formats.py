"""A file goes to the reader that its content belongs to, or is refused with what it is."""

from __future__ import annotations

import gc
import gzip
import json
import time
from pathlib import Path

import pytest

from dagsail.domain.errors import FormatError
from dagsail.workloads import alibaba, argo, dax, native, openb, spark, stg, wfformat
from dagsail.workloads.formats import find_reader, read_workflows

NATIVE = "kind: Workflow\nmetadata: {name: n}\nspec: {tasks: [{id: a, runtime: 1}]}\n"
ARGO = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {entrypoint: a, templates: []}\n"
WFFORMAT = '{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {}}}'
LATE_WFFORMAT = json.dumps({"description": "x" * 5000, "workflow": {"tasks": []}})
DAX = '<?xml version="1.0"?>\n<adag version="2.1" name="x"></adag>'
STG = "2\n0 0 0\n1 5 1 0\n2 5 1 1\n3 0 1 2\n"
ALIBABA = "M1,1,j_1,1,Terminated,1,2,100,0.5\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1024,0,0\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn,64000,262144,0,\n"
SPARK = '[{"query": 1, "size": "2g", "n_stages": 0, "edges": [], "stages": []}]'


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        (NATIVE, native.read),
        ("# a comment\n---\n" + NATIVE, native.read),
        ('{"kind": "Workflow", "metadata": {"name": "n"}, "spec": {"tasks": []}}', native.read),
        (ARGO, argo.read),
        ("kind: ConfigMap\napiVersion: v1\n---\n" + ARGO, argo.read),
        ("entrypoint: a\ntemplates: [{name: a, dag: {tasks: []}}]\n", argo.read),
        (WFFORMAT, wfformat.read),
        (LATE_WFFORMAT, wfformat.read),
        (DAX, dax.read),
        (STG, stg.read),
        (ALIBABA, alibaba.read),
        (PODS, openb.read_pods),
        (SPARK, spark.read),
    ],
)
def test_content_chooses_the_reader(text: str, reader: object) -> None:
    assert find_reader(text, "a.file") is reader


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NODES, "give it as --cluster x.yaml"),
        ("kind: Cluster\nmetadata: {name: c}\n", "a cluster, not a workflow"),
        ("kind: Scenario\nmetadata: {name: c}\n", "give it as --scenario x.yaml"),
        ("apiVersion: v1\nkind: NodeList\nitems: []\n", "Kubernetes nodes"),
        ("apiVersion: v1\nkind: List\nitems: [{kind: Node}]\n", "Kubernetes nodes"),
        ("apiVersion: v1\nkind: PodList\nitems: []\n", "kind PodList without the workflow"),
        ("apiVersion: v1\nkind: List\nitems: [{kind: Pod}]\n", "without the workflow"),
        ("my_dag:\n  default_args: {owner: me}\n  tasks: {}\n", "an Airflow DAG-factory file"),
        ("my_dag:\n  tasks:\n    t: {operator: Bash}\n", "an Airflow DAG-factory file"),
        ("task_graph:\n  tasks: [{name: a}]\n", "an object with the keys 'task_graph'"),
        ("apiVersion: tekton.dev/v1\nkind: Pipeline\n", "kind 'Pipeline'"),
        ('{"apiVersion":"dagsail.io/v1alpha1","kind":"Record"}\n{}\n', "use 'dagsail replay"),
        ("job_name,task_name,mean_instance_duration\n", "durations beside an Alibaba trace"),
        ("<html></html>", "XML, but no Pegasus DAX"),
        ("# only a comment\nkey: [1, 2\n", "not valid YAML"),
        ('{"workflow": ', "not valid JSON"),
        ("---\n", "holds no document"),
        ("[1, 2, 3]", "a list"),
        ("Dear reader,\n", "it begins with 'Dear reader,'"),
    ],
)
def test_other_files_are_refused_by_name(text: str, said: str) -> None:
    source = {"{": "x.json", "D": "x.txt"}.get(text[0], "x.yaml")
    with pytest.raises(FormatError) as caught:
        find_reader(text, source)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refusal_lists_what_is_accepted() -> None:
    with pytest.raises(FormatError, match=r"WfFormat JSON, Pegasus DAX, Argo .* STG"):
        find_reader("Dear reader,\n", "x.txt")


def test_gzipped_file_is_read_like_the_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.stg", tmp_path / "a.stg.gz"
    plain.write_text(STG, encoding="utf-8")
    packed.write_bytes(gzip.compress(STG.encode()))
    assert read_workflows(plain).workflows == read_workflows(packed).workflows


def test_wrong_suffix_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "flow.csv"
    path.write_text(NATIVE, encoding="utf-8")
    assert read_workflows(path).workflows[0].id == "n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_durations_beside_an_alibaba_table_are_used(tmp_path: Path, suffix: str) -> None:
    table = tmp_path / "trace.csv"
    table.write_text(ALIBABA, encoding="utf-8")
    text = b"job_name,task_name,mean_instance_duration\nj_1,M1,7.5\n"
    beside = tmp_path / f"trace_instance_durations.csv{suffix}"
    beside.write_bytes(gzip.compress(text) if suffix else text)
    assert read_workflows(table).workflows[0].tasks[0].runtime_s == 7.5


@pytest.mark.parametrize(
    "unit", ["qwerty uiop\n", "a: b\n", "1 2 3\n", "a,b,c\n", '{"a": [', "<a>", "- x\n"]
)
@pytest.mark.parametrize("suffix", [".txt", ".yaml", ".json"])
def test_megabytes_of_nonsense_are_refused_quickly(tmp_path: Path, unit: str, suffix: str) -> None:
    path = tmp_path / f"nonsense{suffix}"
    path.write_text(unit * (20_000_000 // len(unit)), encoding="utf-8")
    begin = time.perf_counter()
    with pytest.raises(FormatError):
        read_workflows(path)
    assert time.perf_counter() - begin < 5


def test_reading_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(FormatError):
        read_workflows(path)
    assert gc.isenabled()


ACCEPTED_FOLDERS = ("wfinstances-1.5", "wfinstances-legacy", "pegasus-dax", "stg")


def test_all_real_files_of_accepted_formats_are_read(data_dir: Path) -> None:
    paths = [path for name in ACCEPTED_FOLDERS for path in sorted((data_dir / name).rglob("*.*"))]
    assert len(paths) > 80
    for path in paths:
        if path.is_file():
            assert len(read_workflows(path).workflows) == 1, path


def test_real_airflow_files_are_refused_as_such(data_dir: Path) -> None:
    paths = sorted((data_dir / "airflow-dag-factory").glob("*.yml"))
    refusals = []
    for path in paths:
        with pytest.raises(FormatError) as caught:
            read_workflows(path)
        refusals.append(str(caught.value))
    assert sum("Airflow DAG-factory" in text for text in refusals) >= len(paths) - 1


def test_real_durations_change_what_is_read(data_dir: Path) -> None:
    reading = read_workflows(data_dir / "alibaba-2018" / "batch_task_sample.csv.gz")
    assert len(reading.workflows) == 4400
    assert not any("no measured duration" in line for line in reading.warnings)
