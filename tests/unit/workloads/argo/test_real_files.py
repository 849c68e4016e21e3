"""Real Argo files, their counts worked out by hand from the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dagsail.domain.errors import FormatError
from dagsail.domain.units import GIB, MIB
from dagsail.domain.workflow import Task, Workflow
from dagsail.workloads.argo import read
from dagsail.workloads.reading import Reading


@pytest.fixture(scope="module")
def argo_dir(data_dir: Path) -> Path:
    return data_dir / "argo"


def reading(argo_dir: Path, name: str) -> Reading:
    return read((argo_dir / name).read_text(encoding="utf-8"), name)


def workflow(argo_dir: Path, name: str) -> Workflow:
    (found,) = reading(argo_dir, name).workflows
    return found


def task(argo_dir: Path, name: str, task_id: str) -> Task:
    return {t.id: t for t in workflow(argo_dir, name).tasks}[task_id]


def test_every_file_outside_invalid_gives_workflows_that_explain_themselves(
    argo_dir: Path,
) -> None:
    files = sorted(p for p in argo_dir.rglob("*.y*ml") if p.parent.name != "invalid")
    assert len(files) >= 70
    for path in files:
        result = read(path.read_text(encoding="utf-8"), path.name)
        assert result.workflows, path.name
        assert all(warning.startswith(f"{path.name}: ") for warning in result.warnings)


def test_a_template_of_a_template_is_refused(argo_dir: Path) -> None:
    with pytest.raises(FormatError, match="not valid YAML"):
        reading(argo_dir, "invalid/maskrcnn-training-gotemplate.yaml")


@pytest.mark.parametrize(
    ("name", "num_tasks", "num_edges"),
    [
        # Diamonds of diamonds: 4 x 4 inner edges and 4 from last to first.
        ("argoproj-examples/dag-nested.yaml", 16, 20),
        ("argoproj-examples/dag-multiroot.yaml", 4, 3),
        # A diamond of three parallel steps each: 4 x 3 x 3 edges.
        ("argoproj-examples/dag-diamond-steps.yaml", 12, 36),
        ("argoproj-examples/dag-targets.yaml", 3, 2),
        ("argoproj-examples/dag-enhanced-depends.yaml", 7, 10),
        # D runs only if B fails.
        ("argoproj-examples/dag-continue-on-fail.yaml", 6, 6),
        ("argoproj-examples/dag-daemon-task.yaml", 6, 7),
        ("argoproj-examples/loops-dag.yaml", 5, 6),
        # 5 + 6 + 3 + 6 + 5 items, all in one group.
        ("argoproj-examples/loops-sequence.yaml", 25, 0),
        ("argoproj-examples/loops-maps.yaml", 4, 0),
        ("argoproj-examples/loops-param-result.yaml", 2, 1),
        ("argoproj-examples/map-reduce.yaml", 3, 2),
        # intentional-fail, then notify and celebrate; cry is for failures.
        ("argoproj-examples/exit-handlers.yaml", 3, 2),
        ("argoproj-examples/conditionals-complex.yaml", 7, 7),
        ("argoproj-examples/coinflip-recursive.yaml", 2, 1),
        # 4 odd-or-even; both prints and divide-by-2 wait for all 4; print waits for one.
        ("argoproj-examples/parameter-aggregation-dag.yaml", 8, 13),
        # 5 forks of 2 edges; 2 x 3 into b2, b3, b4; 6 into b5.
        ("argoproj-examples/parallelism-nested-dag.yaml", 15, 22),
        ("argoproj-examples/influxdb-ci.yaml", 11, 13),
        ("argoproj-examples/ci.yaml", 4, 3),
        ("argoproj-examples/timeouts-workflow.yaml", 6, 0),
        ("argoproj-examples/suspend-template.yaml", 4, 3),
        ("couler/run_concurrent_subtasks_golden.yaml", 6, 6),
        ("gpu/gpu-say-workflow.yaml", 3, 0),
        # check-model, model-downloader, tokenizer, finetuner; two steps are switched off.
        ("gpu/finetune-workflow.yaml", 4, 3),
        # Each of 8 components is a driver and an executor; one driver for the whole.
        ("kubeflow-compiled/xgboost_sample_pipeline.yaml", 17, 20),
        ("kubeflow-compiled/pipeline_with_exit_handler.yaml", 8, 8),
        ("linz/copy.yaml", 4, 3),
        ("linz/map-produce.yaml", 7, 8),
        ("linz/hillshade.yaml", 9, 11),
        ("linz/standardising.yaml", 10, 12),
        ("linz/create-thumbnails.yaml", 3, 2),
        ("litmus/podtato-head.yaml", 5, 4),
        ("onepanel/auto-cvat.yaml", 4, 3),
        # The clean-up task runs only if the deployment fails.
        ("pipekit-ci/ci-workflow.yml", 4, 3),
    ],
)
def test_counts(argo_dir: Path, name: str, num_tasks: int, num_edges: int) -> None:
    found = workflow(argo_dir, name)
    assert (len(found.tasks), len(found.dependencies)) == (num_tasks, num_edges)


def test_a_file_of_templates_gives_one_workflow_each(argo_dir: Path) -> None:
    result = reading(argo_dir, "argoproj-examples/workflow-template_templates.yaml")
    prefix = "workflow-template-"
    assert [
        (w.id.removeprefix(prefix), len(w.tasks), len(w.dependencies)) for w in result.workflows
    ] == [
        ("print-message", 1, 0),
        ("random-fail-template", 1, 0),
        ("inner-steps", 3, 2),
        ("inner-dag", 4, 4),
        ("submittable", 1, 0),
    ]


def test_requests(argo_dir: Path) -> None:
    gpu = task(argo_dir, "gpu/gpu-say-workflow.yaml", "echo(0)")
    assert gpu.request == {"cpu": 500, "memory": 128 * MIB, "nvidia.com/gpu": 1}
    assert gpu.placement.required[0].requirements[0].values == ("8", "10", "11")
    assert (gpu.max_retries, gpu.image) == (1, "nvidia/cuda:10.2-runtime-ubuntu18.04")
    patched = task(argo_dir, "gpu/finetune-workflow.yaml", "finetuner")
    assert patched.request == {
        "cpu": 8000,
        "memory": 192 * GIB,
        "nvidia.com/gpu": 1,
        "ephemeral-storage": 512 * GIB,
    }
    both = task(argo_dir, "argoproj-examples/pod-spec-patch-wf-tmpl.yaml", "hello-world")
    assert both.request == {"cpu": 100, "memory": 100 * MIB}
    pod_level = task(argo_dir, "argoproj-examples/pod-resources.yaml", "hello-world")
    assert pod_level.request == {"cpu": 100, "memory": 64 * MIB}
    spot = task(argo_dir, "linz/create-thumbnails.yaml", "thumbnails")
    # 7.8Gi is no whole number of bytes; Kubernetes rounds up.
    assert spot.request == {"cpu": 15000, "memory": 8375186228, "ephemeral-storage": 3 * GIB}
    assert spot.placement.node_selector == (("karpenter.sh/capacity-type", "spot"),)
    assert spot.image == "registry.example.com/topo-imagery:v7"


def test_times_that_files_state(argo_dir: Path) -> None:
    assert task(argo_dir, "argoproj-examples/suspend-template.yaml", "delay").runtime_s == 20.0
    assert workflow(argo_dir, "argoproj-examples/timeouts-workflow.yaml").deadline_s == 30.0
    limited = task(argo_dir, "argoproj-examples/template-defaults.yaml", "hello-world")
    assert (limited.timeout_s, limited.max_retries) == (30.0, 2)
    recorded = workflow(argo_dir, "argoproj-with-status/dag-exhausted-retries-xfail.yaml")
    assert {t.id: t.runtime_s for t in recorded.tasks} == {
        "success1": 3.0,  # one attempt
        "sub-dag1.fail": 3.5,  # two failed attempts, 4 s and 3 s
        "success2": 3.0,  # never ran; its template did
    }
    assert [t.max_retries for t in recorded.tasks] == [1, 1, 1]
    repeated = workflow(argo_dir, "argoproj-with-status/dag-disable-fail-fast.yaml")
    assert {t.id: t.runtime_s for t in repeated.tasks} == {
        "A": 4.0,
        "B": 33.0,
        "C": 4.0,  # two failed attempts, 5 s and 3 s
        "D": 4.0,
        "E": 3.0,
    }


def test_parameters_reach_placement_and_images(argo_dir: Path) -> None:
    arch = task(argo_dir, "argoproj-examples/node-selector.yaml", "print-arch")
    assert arch.placement.node_selector == (("beta.kubernetes.io/arch", "amd64"),)
    maps = workflow(argo_dir, "argoproj-examples/loops-maps.yaml")
    assert [t.image for t in maps.tasks] == [
        "debian:9.1",
        "debian:8.9",
        "alpine:3.6",
        "ubuntu:17.10",
    ]
