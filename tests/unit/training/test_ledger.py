"""The ledger, and the command and the picture that show it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dagsail import cli
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.compose import policies_of, setup_for
from dagsail.domain.errors import InputError
from dagsail.domain.scenario import Arrivals, Runtimes, Scenario
from dagsail.evaluation.occupation import costs, occupation
from dagsail.training.ledger import Ledger, ledger
from dagsail.training.rewards import TERMS, RewardSettings

NAMES = [term.name for term in TERMS]
CONFIG = """apiVersion: dagsail.io/v1alpha1
kind: Training
metadata: {name: mine}
spec:
  stages: [{algorithm: ppo}]
  rewards:
    weights: {completion: 1.0, wait: 0.5}
    limit: 0.001
"""


def simulation() -> Simulation:
    scenario = Scenario(arrivals=Arrivals(kind="poisson", load=0.9), runtimes=Runtimes(noise=0.4))
    setup = setup_for(["ai-training:6"], "edge", scenario)
    return Simulation(setup.arrivals(1), setup.cluster, setup.scenario, 1)


def kept(policy: str, reward: RewardSettings | None = None) -> Ledger:
    (found,) = policies_of([policy])
    return ledger(simulation(), found, RewardSettings() if reward is None else reward)


@pytest.mark.parametrize("policy", ["scorer", "scorer:cost=1", "learned", "learned:cost=1"])
def test_a_policy_decides_as_it_does_in_a_run_and_its_terms_add_up(policy: str) -> None:
    played, (found,) = kept(policy), policies_of([policy])
    run = simulation().run(found)
    placed = [decision for decision in played.decisions if decision.node is not None]
    assert len(placed) == run.num_decisions
    owner = run.snapshot.tasks["workflow"]
    assert sorted((one.workflow, one.task, one.node) for one in placed) == sorted(
        (run.names.workflows[owner[task]], run.names.tasks[task], run.names.nodes[node])
        for task, node in run.attempts[["task", "node"]].tolist()
    )
    sums = dict(zip(NAMES, played.terms.sum(axis=0).tolist(), strict=True))
    flows = run.snapshot.workflows
    total_s = float((flows["finish_s"] - flows["arrival_s"]).sum())
    assert -sums["completion"] * float(flows["critical_path_s"].mean()) == pytest.approx(total_s)
    spent = -(sums["cost_cpu"] + sums["cost_memory"] + sums["cost_gpu"])
    assert spent == pytest.approx(costs(occupation(run), run.snapshot).total_usd)


def test_one_policy_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["rewards", "etl:1", "--policy", "scorer,learned"]) == 2
    assert "rewards runs one policy; 'dagsail compare' takes a list" in capsys.readouterr().err


def test_parts_are_weighted_terms_and_rewards_their_clipped_sums() -> None:
    played = kept("scorer", RewardSettings(weights={"wait": 2.0, "energy": 0.5}, limit=0.01))
    wait, energy = NAMES.index("wait"), NAMES.index("energy")
    expected = 2.0 * played.terms[:, wait] + 0.5 * played.terms[:, energy]
    assert played.parts.sum(axis=1) == pytest.approx(expected)
    assert (expected < -0.01).any()
    assert played.rewards == pytest.approx(expected.clip(-0.01, 0.01))


def test_pressure_is_known_where_the_objective_is_the_bundles() -> None:
    pressures = np.array([one.pressure for one in kept("learned").decisions])
    assert ((pressures >= 0) & (pressures <= 1)).all()
    values = np.array([one.value for one in kept("learned").decisions])
    order = np.argsort(values)
    assert (np.diff(pressures[order]) <= 1e-12).all()  # a high value is no pressure
    assert np.isnan([one.pressure for one in kept("learned:cost=1").decisions]).all()
    assert np.isnan([one.pressure for one in kept("scorer").decisions]).all()


def test_a_rule_does_not_answer_observations() -> None:
    with pytest.raises(InputError, match="fifo does not answer observations; 'learned'"):
        kept("fifo")


def test_command_shows_terms_and_keeps_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.yaml").write_text(CONFIG)
    command = ["rewards", "etl:2", "--cluster", "edge", "--config", "train.yaml"]
    assert cli.run([*command, "--json=terms.json", "--chart", "terms.svg"]) == 0
    shown = capsys.readouterr().out
    assert "completion" in shown
    assert "written: terms.svg" in shown
    found = json.loads(Path("terms.json").read_text())
    assert set(found["sums"]) == set(NAMES)
    assert found["weighted_sums"]["wait"] == pytest.approx(0.5 * found["sums"]["wait"])
    assert found["weighted_sums"]["energy"] == 0.0
    assert min(one["reward"] for one in found["decisions"]) == -0.001
    picture = Path("terms.svg").read_text()
    assert "decision (drag to choose those below)" in picture
    assert ">overuse<" in picture


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("wait: 0.5", "waits: 0.5", "reward: no term 'waits'; allowed are completion"),
        ("wait: 0.5", "wait: .nan", "reward: wait weighs nan"),
        ("limit: 0.001", "limit: -1", "spec.rewards.limit"),
        ("limit: 0.001", "byPool: {tpu: {wait: 1}}", "no pool 'tpu'"),
        ("weights: {completion: 1.0, wait: 0.5}", "low: 0.1", "names no weight"),
    ],
)
def test_bad_weights_are_one_line(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(CONFIG.replace(old, new))
    assert cli.run(["rewards", "etl:2", "--config", str(path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
