"""Training from settings to a bundle: repeatable, resumable, on any kind of worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dagsail.cli import run as command
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.errors import FormatError, TrainingError
from dagsail.policies.neural.bundle import read_bundle
from dagsail.policies.neural.network import CRITIC
from dagsail.policies.scoring.weights import preset_by_aim
from dagsail.training import run as runs
from dagsail.training.algorithms import algorithm_of
from dagsail.training.learner import fresh, network_of
from dagsail.training.rollouts import play
from dagsail.training.run import News, Trained
from dagsail.training.settings import (
    CmaEs,
    NetworkSettings,
    Training,
    WorldSettings,
    read_training,
)
from dagsail.training.workers import crew
from dagsail.training.worlds import Worlds

SETTINGS = """
apiVersion: dagsail.io/v1alpha1
kind: Training
metadata: {name: small}
spec:
  seed: 3
  worlds: {families: {ai-training: 3, etl: 2}, maxTypes: 3, maxNodesPerType: 2, maxTasks: 60}
  network: {hidden: 8, summary: 4}
  validation: {worlds: 4, every: 1, rules: [fifo, scorer]}
  workers: {count: 2, backend: inline}
  stages:
    - {algorithm: cma-es, steps: 2, population: 4, worlds: 2, rotation: 1}
    - {algorithm: imitation, steps: 1, teacher: fifo, worlds: 2, batch: 64}
    - algorithm: ppo
      steps: 3
      worlds: 2
      replicas: 2
      batch: 128
      entropyStart: 0.01
      explorationStart: 0.1
      priority: 0.5
      curriculum: [{until: 0.3, maxTasks: 25}]
    - {algorithm: lookahead, steps: 2, worlds: 2, questions: 5, answers: 2, updates: 2, batch: 8}
    - {algorithm: ppo, steps: 1, worlds: 2, replicas: 2, batch: 128, baseline: critic}
"""


class Silent:
    def add_scalar(self, tag: str, value: float, step: int) -> None:
        assert np.isfinite(value), tag


def settings(*changes: tuple[str, str]) -> Training:
    text = SETTINGS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return read_training(text, "small.yaml")


def train(
    training: Training,
    folder: Path,
    tell: Callable[[News], None] = lambda news: None,
    resume: bool = False,
) -> Trained:
    folder.mkdir(exist_ok=True)
    return runs.train(training, folder, Silent(), tell, resume)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(settings(), tmp_path_factory.mktemp("whole"))


def assert_same(one: Trained, other: Trained) -> None:
    assert one.learner.weights.tobytes() == other.learner.weights.tobytes()
    for name, array in one.learner.network.items():
        assert array.tobytes() == other.learner.network[name].tobytes(), name
    assert one.curve == other.curve
    assert one.table == other.table


@pytest.mark.parametrize("stage", range(6))
def test_a_step_changes_what_the_algorithm_is_for(stage: int) -> None:
    critic = (
        "    - {algorithm: ppo, criticOnly: true, steps: 1, worlds: 2, replicas: 2, batch: 128}\n"
    )
    spec = read_training(SETTINGS + critic, "small.yaml").spec
    before = fresh(preset_by_aim(), spec.network, 0)
    with crew(spec) as workers:
        algorithm = algorithm_of(spec.stages[stage], before, spec, workers, stage)
        metrics = algorithm.step(0)
    after = algorithm.learner
    assert np.isfinite(list(metrics.values())).all()
    changed = {n for n, array in after.network.items() if (array != before.network[n]).any()}
    if isinstance(spec.stages[stage], CmaEs):
        assert (after.weights != before.weights).any(axis=1).tolist() == [False, True, True, True]
    else:
        assert (after.weights == before.weights).all()
    is_critic_only = stage == 5
    assert changed
    assert all(name.startswith(CRITIC) for name in changed) == is_critic_only


def test_every_stage_is_judged_and_the_rules_too(trained: Trained) -> None:
    algorithms = [entry["algorithm"] for entry in trained.curve]
    assert (
        algorithms
        == ["cma-es"] * 3 + ["imitation"] * 2 + ["ppo"] * 4 + ["lookahead"] * 3 + ["ppo"] * 2
    )
    for entry in trained.curve:
        assert np.isfinite([entry["score"], entry["score_default"]]).all()
    assert set(trained.table) == {"fifo", "scorer", "scorer, this objective", "learned"}
    assert trained.table["scorer"]["score"] != trained.table["fifo"]["score"]


def test_same_seed_same_weights_in_processes_too(trained: Trained, tmp_path: Path) -> None:
    assert_same(trained, train(settings(("inline", "processes")), tmp_path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_same_weights_on_a_ray_cluster(tmp_path: Path) -> None:
    stages = SETTINGS[SETTINGS.index("  stages:") :]
    one = "  stages: [{algorithm: ppo, steps: 1, worlds: 2, replicas: 2, batch: 128}]\n"
    here = train(settings((stages, one)), tmp_path / "here")
    there = train(settings((stages, one), ("inline", "ray")), tmp_path / "there")
    assert_same(here, there)


@pytest.mark.parametrize("after", [1, 4])
def test_resumed_is_as_if_never_interrupted(trained: Trained, tmp_path: Path, after: int) -> None:
    told: list[News] = []

    def interrupt(news: News) -> None:
        told.append(news)
        if len(told) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings(), tmp_path, interrupt)
    assert_same(trained, train(settings(), tmp_path, resume=True))


def test_resuming_with_other_settings_or_schema_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FormatError, match="nothing to resume"):
        train(settings(), tmp_path, resume=True)

    def stop(news: News) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings(), tmp_path, stop)
    with pytest.raises(FormatError, match="made with other settings"):
        train(settings(("seed: 3", "seed: 4")), tmp_path, resume=True)
    monkeypatch.setattr("dagsail.policies.scoring.schema.VERSION", 99)
    with pytest.raises(
        FormatError, match="made for feature schema 2, this version of Dagsail has 99"
    ):
        train(settings(), tmp_path, resume=True)
    (tmp_path / "checkpoint.safetensors").write_bytes(b"{}")
    with pytest.raises(FormatError, match="is no checkpoint that can be read"):
        train(settings(), tmp_path, resume=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed: 3", "sed: 3", "spec.sed: unknown key; did you mean 'seed'"),
        ("hidden: 8", "hidden: 0", "spec.network.hidden: found 0, expected a whole number"),
        ("etl: 2", "elt: 2", "spec.worlds.families: did you mean 'etl'"),
        ("steps: 1, teacher", "steps: x, teacher", "steps: found 'x', expected a whole number"),
        ("priority: 0.5", "priorty: 0.5", "priorty: unknown key; did you mean 'priority'"),
        ("algorithm: imitation", "algorithm: dqn", "algorithm"),
        ("maxTypes: 3", "maxTypes: 1", "the least types is above the largest"),
        ("name: small", "name: ../small", "metadata.name: found '../small'; it names folders"),
        ("count: 2", "count: 3", "2 worlds are too few for 3 workers"),
        ("seed: 3", "seed: 3\n  start: x", "cma-es tunes the scorer that a network begins as"),
        ("teacher: fifo", "teacher: fifa", "did you mean 'fifo'"),
        ("batch: 64", "batch: 1", "batch: 1 is below the workers"),
    ],
)
def test_bad_settings_are_one_line(old: str, new: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        settings((old, new))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reward_that_is_no_number_stops_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NetworkSettings(hidden=8, summary=4)
    learner = fresh(preset_by_aim(), network, 0)
    simulation = Worlds(WorldSettings(families={"etl": 2}, max_tasks=30)).simulation(0)
    simulation.snapshot.nodes["price_usd_per_h"][:] = np.nan
    objectives = np.array([[1, 0, 0, 0]], np.float32)
    with pytest.raises(TrainingError, match="the term 'cost_cpu' is not a number"):
        play(network_of(learner.network, network), learner.weights, [simulation], objectives, None)


def test_worlds_are_the_same_each_time_and_differ_among_each_other() -> None:
    def shape(simulation: Simulation) -> tuple[Any, ...]:
        snapshot = simulation.snapshot
        return len(snapshot.tasks), len(snapshot.nodes), snapshot.tasks["mean_s"].tobytes()

    worlds, again = Worlds(WorldSettings()), Worlds(WorldSettings())
    shapes = [shape(worlds.simulation(episode)) for episode in range(5)]
    assert shapes == [shape(again.simulation(episode)) for episode in range(5)]
    assert len(set(shapes)) == 5
    small = worlds.simulation(1, max_tasks=25).snapshot
    assert np.bincount(small.tasks["workflow"]).max() <= 25
    assert len(small.workflows) == WorldSettings().families["ai-training"]


def test_command_makes_a_bundle_that_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "small.yaml"
    text = SETTINGS[: SETTINGS.index("  stages:")]
    config.write_text(
        text + "  stages: [{algorithm: ppo, steps: 1, worlds: 2, replicas: 2, batch: 128}]\n"
    )
    folder = tmp_path / "mine"
    assert command(["train", str(config), "--output", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "Validation" in shown
    assert "learned" in shown
    bundle = read_bundle(folder / "current")
    assert (folder / "current").is_symlink()
    assert bundle.spec.training["settings"]["seed"] == 3
    assert len(bundle.spec.value_quantiles) == 21
    assert any((folder / "curves").iterdir())
    assert command(["train", str(config), "--output", str(folder)]) == 2
    assert "go on with --resume" in capsys.readouterr().err
    assert command(["bundle", "verify", str(folder / "current")]) == 0
    assert command(["bundle", "show", str(folder / "current"), "--json"]) == 0
    capsys.readouterr()
    assert (
        command(
            [
                "simulate",
                "etl:2",
                "--cluster",
                "edge",
                "--policy",
                str(folder / "current"),
                "--json",
            ]
        )
        == 0
    )
