"""What `inspect`, `simulate`, `replay`, `compare` and `demo` give for workflows known by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagsail import cli
from dagsail.policies import DEFAULT_POLICIES, POLICIES

DIAMOND = """\
kind: Workflow
metadata: {name: diamond}
spec:
  deadline: 100
  tasks:
    - {id: a, runtime: 10, request: {cpu: 1, memory: 1Gi}}
    - {id: b, runtime: 20, request: {cpu: 1, memory: 1Gi}, dependsOn: [{task: a, data: 100}]}
    - {id: c, runtime: 30, request: {cpu: 1, memory: 1Gi}, dependsOn: [a], workers: 2}
    - {id: d, runtime: 40, request: {cpu: 1, memory: 1Gi}, dependsOn: [b, c]}
"""
CLUSTER = """\
kind: Cluster
metadata: {name: pair}
spec: {nodes: [{name: n, count: 2, price: 3.6, allocatable: {cpu: 4, memory: 16Gi}}]}
"""
EFFECTS = """\
kind: Scenario
metadata: {name: rough}
spec:
  runtimes: {noise: 0.3, stragglerRatio: 0.1}
  faults: {nodeMtbfS: 20000, taskFailureRatio: 0.1, oomRatio: 0.05}
  startup: {containerS: 1}
"""


BUSY = ("f.yaml", "microservices:8", "--cluster", "edge", "--load", "1.5", "--seed", "3")
"""Some hundred tasks that queue."""
ROUGH = ("--scenario", "s.yaml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("f.yaml", DIAMOND), ("c.yaml", CLUSTER), ("s.yaml", EFFECTS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Standard output of a command that must succeed."""
    capsys.readouterr()
    assert cli.run(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def test_inspect_counts_what_a_file_holds(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = json.loads(run(capsys, "inspect", "f.yaml", "--json"))["workflows"]
    assert found["id"] == "diamond"
    assert (found["tasks"], found["edges"], found["data_bytes"]) == (4, 4, 100)
    assert (found["work_s"], found["critical_path_s"]) == (130.0, 80.0)  # c has two workers
    assert (found["depth"], found["width"]) == (3, 2)


def test_inspect_reports_repairs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bare.yaml").write_text(
        "kind: Workflow\nmetadata: {name: n}\nspec: {tasks: [{id: a}]}\n", encoding="utf-8"
    )
    assert cli.run(["inspect", "bare.yaml", "--json"]) == 0
    out, err = capsys.readouterr()
    warnings = json.loads(out)["warnings"]
    assert len(warnings) == 3
    assert err.splitlines() == [f"warning: {line}" for line in warnings]


def test_inspect_table_is_cut_and_totalled(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "inspect", "microservices:40")
    assert "... and 15 more" in out
    assert "40 workflows" in out


def test_simulate_gives_the_exact_times(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "simulate", "f.yaml", "--cluster", "c.yaml", "--policy", "fifo", "--json")
    found = json.loads(out)
    assert (found["policy"], found["cluster"], found["tasks"]) == ("fifo", "pair", 4)
    metrics = found["metrics"]
    # All on one node or with a transfer of 100 bytes: 10 + 30 + 40 s.
    assert metrics["makespan_s"] == pytest.approx(80.0, abs=0.01)
    assert metrics["jct_mean_s"] == metrics["makespan_s"]
    assert metrics["deadline_met_ratio"] == 1.0
    # A quarter of a node at 3.6 USD/h for 10 + 20 + 2 x 30 + 40 s.
    assert metrics["cost_usd"] == pytest.approx(0.25 * 3.6 / 3600 * 130, rel=1e-3)
    assert metrics["gpu_cost_usd"] == 0.0


def test_json_alone_is_pure_even_with_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "simulate", "--json", "f.yaml", "--load", "0.5", "--gantt", "g.svg")
    found = json.loads(out)
    assert any("100 workflows are drawn" in line for line in found["warnings"])
    assert "NaN" not in out
    assert found["metrics"]["decision_p50_ms"] is None
    assert Path("g.svg").read_text(encoding="utf-8").startswith("<svg")


def test_simulate_writes_json_beside_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "simulate", "f.yaml", "--json=out.json")
    assert "makespan_s" in out
    assert "written: out.json" in out
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["tasks"] == 4


def test_timeline_has_the_keys_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "simulate", "f.yaml", "--cluster", "c.yaml", "--timeline", "t.jsonl")
    rows = lines("t.jsonl")
    assert [row["task"] for row in rows] == ["a", "b", "c", "d"]
    keys = "workflow task attempt parents node submitted_s ready_s start_s end_s outcome request"
    assert all(row.keys() >= {*keys.split(), "estimate_s"} for row in rows)
    assert rows[3]["parents"] == ["b", "c"]
    assert {row["outcome"] for row in rows} == {"finished"}


def test_gantt_as_page(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "simulate", "f.yaml", "--gantt", "g.html")
    assert "<html" in Path("g.html").read_text(encoding="utf-8")


def test_record_says_what_was_decided_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "simulate", "f.yaml", "--cluster", "c.yaml", "--record", "r.jsonl")
    header, *decisions = lines("r.jsonl")
    assert header["kind"] == "Record"
    assert header["workload"][0]["name"] == "f.yaml"
    assert [row["task"] for row in decisions] == ["a", "c", "b", "d"]
    gang = decisions[1]
    assert len(gang["nodes"]) == 2
    assert gang["time_s"] == 10.0
    assert gang["verdicts"] == {"legal": 2}
    assert gang["nodes"][0] in [candidate["node"] for candidate in gang["candidates"]]


def test_record_counts_verdicts_as_they_were_before(capsys: pytest.CaptureFixture[str]) -> None:
    Path("full.yaml").write_text(
        "kind: Workflow\nmetadata: {name: n}\nspec:\n  tasks:\n"
        + "".join(
            f"    - {{id: t{i}, runtime: 9, request: {{cpu: 3, memory: 1}}}}\n" for i in (1, 2)
        ),
        encoding="utf-8",
    )
    run(capsys, "simulate", "full.yaml", "--cluster", "c.yaml", "--record", "r.jsonl")
    verdicts = [row["verdicts"] for row in lines("r.jsonl")[1:]]
    assert verdicts == [{"legal": 2}, {"legal": 1, "no_room": 1}]


@pytest.mark.parametrize("policy", [entry.name for entry in POLICIES])
def test_replay_gives_the_recorded_metrics(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = run(capsys, "simulate", *BUSY, *ROUGH, "--policy", policy, "--record", "r", "--json")
    replayed = run(capsys, "replay", "r", "--json", "--timeline", "t")
    assert json.loads(replayed)["metrics"] == json.loads(recorded)["metrics"]
    assert len(lines("t")) >= json.loads(recorded)["metrics"]["decisions"]


@pytest.mark.parametrize("policy", DEFAULT_POLICIES)
def test_recording_does_not_disturb_the_run(
    policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = run(capsys, "simulate", *BUSY, "--policy", policy, "--noise", "0.4", "--json")
    arguments = (*BUSY, "--policy", policy, "--noise", "0.4", "--json", "--record", "r")
    assert run(capsys, "simulate", *arguments) == plain


def test_replay_notices_a_changed_file(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "simulate", "f.yaml", "--cluster", "c.yaml", "--record", "r")
    Path("f.yaml").write_text(DIAMOND.replace("20", "21"), encoding="utf-8")
    assert cli.run(["replay", "r"]) == 2
    assert "r: f.yaml is gone or has changed" in capsys.readouterr().err


def test_replay_notices_a_record_that_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "simulate", "f.yaml", "--cluster", "c.yaml", "--record", "r")
    text = Path("r").read_text(encoding="utf-8")
    Path("r").write_text("".join(text.splitlines(keepends=True)[:-1]), encoding="utf-8")
    assert cli.run(["replay", "r"]) == 2
    assert "r:5: the simulation parts from the record" in capsys.readouterr().err
    Path("r").write_text(text[:-40], encoding="utf-8")
    assert cli.run(["replay", "r"]) == 2
    assert "r:5: no line of a decision record" in capsys.readouterr().err


def test_replay_notices_a_placement_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "simulate", "f.yaml", "--cluster", "c.yaml", "--record", "r")
    text = Path("r").read_text(encoding="utf-8")
    Path("r").write_text(text.replace('"time_s":10.0', '"time_s":9.0'), encoding="utf-8")
    assert cli.run(["replay", "r"]) == 2
    assert "r:3: the simulation parts from the record" in capsys.readouterr().err
    Path("r").write_text(text.replace('"task":"d"', '"task":"e"'), encoding="utf-8")
    assert cli.run(["replay", "r"]) == 2
    assert "r:5: names a task or node that the run does not have" in capsys.readouterr().err


def test_same_seed_same_bytes_under_any_hash_seed(folder: Path) -> None:
    written = []
    for hash_seed in ("1", "2"):
        names = [f"{kind}{hash_seed}" for kind in ("t", "r", "j")]
        command = [
            *(sys.executable, "-m", "dagsail", "simulate", "f.yaml", "mixed:5", "--seed", "4"),
            *("--scenario", "s.yaml", "--policy", "kube-default@1.34"),
            *("--timeline", names[0], "--record", names[1], f"--json={names[2]}"),
        ]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
        written.append([(folder / name).read_bytes() for name in names])
    assert written[0] == written[1]
    assert all(written[0])


def test_compare_writes_what_the_contract_says(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(
        capsys,
        *("compare", "microservices:8", "--policy", "fifo,heft", "--seeds", "2", "--noise", "0.2"),
        *("--json", "out.json", "--report", "pages"),
    )
    found = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert list(found["policies"]) == ["fifo", "heft"]
    needed = (
        "jct_mean_s jct_p95_s jct_bound_s makespan_s slowdown_mean wait_mean_s deadline_met_ratio"
        " start_sla_ratio cost_usd gpu_cost_usd node_load_std fragmentation utilisation decisions"
        " decision_p50_ms decision_p99_ms deadline_met_ratio_p0"
    )
    for metrics in found["policies"].values():
        assert metrics.keys() >= set(needed.split())
        assert len(metrics["jct_mean_s"]["per_seed"]) == 2
        assert len(metrics["jct_mean_s"]["ci95"]) == 2
    assert found["paired"]["reference"] == "fifo"
    assert any("2 seeds cannot tell" in line for line in found["warnings"])
    assert "written: pages/index.html" in out
    page = Path("pages/index.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "heft" in page


def test_compare_ranks_by_mean_completion_time(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("microservices:8", "--cluster", "edge", "--seeds", "1")
    found = json.loads(run(capsys, "compare", *arguments, "--json"))["policies"]
    means = {name: metrics["jct_mean_s"]["mean"] for name, metrics in found.items()}
    table = run(capsys, "compare", *arguments)
    words = [row.split() for row in table.splitlines()]
    shown = [row[1] for row in words if len(row) > 1 and row[1] in means and row[0].isdigit()]
    assert sorted(shown) == sorted(means)
    assert [means[name] for name in shown] == sorted(means.values())


def test_compare_simulates_the_same_luck_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("f.yaml", "--cluster", "c.yaml", "--seeds", "3", "--noise", "0.5", "--json")
    found = json.loads(run(capsys, "compare", *arguments, "--policy", "fifo,round-robin"))
    # With room for all there is nothing to decide: equal to the digit, seed by seed.
    per_seed = [found["policies"][name]["makespan_s"]["per_seed"] for name in found["policies"]]
    assert per_seed[0] == pytest.approx(per_seed[1], rel=1e-4)
    assert len(set(per_seed[0])) == 3


@pytest.mark.slow
def test_the_report_says_what_was_assumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("ai-training:20", "--cluster", "edge", "--policy", "fifo", "--seeds", "2")
    run(capsys, "compare", *files, "--report", "pages")
    said = "ai-training: some tasks ask for more than cluster"
    assert said in (folder / "pages" / "index.html").read_text(encoding="utf-8")


def test_demo_ranks_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "demo", "--report", "pages")
    assert all(name in out for name in DEFAULT_POLICIES)
    assert Path("pages/index.html").resolve().as_uri() in out
    assert "dagsail compare flow.yaml" in out
