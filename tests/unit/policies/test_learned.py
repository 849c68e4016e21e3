"""The policy `learned` and its bundles: the same answer everywhere, and nothing bad is loaded."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors.numpy

from dagsail.cli import run as command
from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.compose import policies_of, setup_for
from dagsail.domain.errors import FormatError, InputError, OutputError
from dagsail.domain.scenario import Arrivals, Runtimes, Scenario
from dagsail.evaluation.aims import aims
from dagsail.policies.neural.bundle import (
    CARD,
    DESCRIPTION,
    FILES,
    MANIFEST,
    MODEL,
    WEIGHTS,
    Sampling,
    make_current,
    read_bundle,
)
from dagsail.policies.neural.learned import Learned, default_bundle
from dagsail.policies.neural.model import INPUTS
from dagsail.policies.neural.network import Network, Sizes
from dagsail.policies.scoring import schema
from dagsail.policies.scoring.objective import AIMS, objective_of
from dagsail.policies.scoring.observation import arrays_of
from dagsail.training.lockstep import Lockstep

SCENARIO = Scenario(runtimes=Runtimes(noise=0.4), arrivals=Arrivals(kind="poisson", load=1.0))


def simulation(seed: int, source: str = "mixed:10", cluster: str = "edge") -> Simulation:
    setup = setup_for([source], cluster, SCENARIO)
    return Simulation(setup.arrivals(seed), setup.cluster, setup.scenario, seed)


def run(policy: Learned, seed: int = 0, source: str = "mixed:10") -> Run:
    return simulation(seed, source).run(policy)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the bundle that comes with Dagsail, to be spoiled."""
    folder = tmp_path / "bundle"
    shutil.copytree(default_bundle().folder, folder)
    return folder


def resign(folder: Path) -> None:
    """Write the manifest anew, as one would who means it."""
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in FILES]
    (folder / MANIFEST).write_text("".join(lines))


def test_torch_and_onnx_agree() -> None:
    bundle = default_bundle()
    state = safetensors.numpy.load((bundle.folder / WEIGHTS).read_bytes())
    import torch

    network = Network(np.zeros(state["by_aim"].shape), 1.0, Sizes())
    network.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    policy = Learned("learned", bundle)
    episodes = iter([simulation(seed) for seed in range(4)])
    steps = Lockstep(4, lambda _: next(episodes, None))
    rng = np.random.default_rng(0)
    seen = 0
    while len(active := steps.active) and seen < 400:
        asked = {name: array[active] for name, array in arrays_of(steps.observation).items()}
        asked["objective"] = rng.dirichlet(np.ones(4), len(active)).astype(np.float32)
        logs, values = policy.model(asked)
        with torch.inference_mode():
            expected, worth = network(**{name: torch.from_numpy(asked[name]) for name in INPUTS})
        legal = asked["legal"].reshape(len(active), -1)
        assert (np.isfinite(logs) == legal).all()
        assert np.isfinite(expected.numpy())[legal].all()
        likely = legal & (expected.numpy() > -20.0)
        assert logs[likely] == pytest.approx(expected.numpy()[likely], abs=1e-5, rel=1e-5)
        assert np.exp(logs).sum(axis=1) == pytest.approx(np.ones(len(active)), abs=1e-5)
        assert values == pytest.approx(worth.numpy(), abs=1e-5, rel=1e-5)
        actions = np.zeros(4, np.int64)
        actions[active] = logs.argmax(axis=1)
        steps.step(actions)
        seen += len(active)
    assert seen >= 400


def test_same_snapshot_same_decision_in_any_process() -> None:
    code = (
        "from tests.unit.policies.test_learned import *;"
        "import hashlib;"
        "print(hashlib.sha256(run(Learned('l', default_bundle())).attempts.tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    here = hashlib.sha256(run(Learned("l", default_bundle())).attempts.tobytes()).hexdigest()
    assert digests == {here + "\n"}


def test_temperature_and_top_k_bound_what_is_drawn() -> None:
    bundle = default_bundle()
    greedy = run(Learned("a", bundle, sampling=Sampling(temperature=0.0, top_k=3)))
    only_one = run(Learned("b", bundle, sampling=Sampling(temperature=5.0, top_k=1)))
    hot = run(Learned("c", bundle, sampling=Sampling(temperature=5.0, top_k=3)))
    assert greedy.attempts.tobytes() == only_one.attempts.tobytes()
    assert hot.attempts.tobytes() != greedy.attempts.tobytes()
    policy = Learned("d", bundle, sampling=Sampling(temperature=1.0, top_k=2))
    logs = np.log(np.array([0.05, 0.45, 0.3, 0.2], np.float32))
    drawn = [policy._draw(logs, {"x": np.array([i])}) for i in range(2000)]
    assert set(drawn) == {1, 2}
    assert np.mean(np.array(drawn) == 1) == pytest.approx(0.6, abs=0.04)


def test_the_objective_moves_the_balance() -> None:
    """More weight on cost costs less, on completion is quicker: over seeds, one bundle."""
    totals = {}
    for name in ("completion", "cost"):
        policy = Learned(name, default_bundle(), objective_of({name: 1.0}))
        runs = [simulation(seed, "etl:12", "mixed").run(policy) for seed in range(3)]
        totals[name] = np.sum([aims(one) for one in runs], axis=0)
    jct, cost = AIMS.index("completion"), AIMS.index("cost")
    assert totals["cost"][cost] < 0.95 * totals["completion"][cost]
    assert totals["completion"][jct] < totals["cost"][jct]


def test_value_is_exposed_and_scores_say_what_was_offered() -> None:
    policy = Learned("learned", default_bundle())
    simulated = simulation(0)
    seen = []

    def on_decision(snapshot, state, decide):
        placed = decide()
        seen.append(state.value)
        return placed

    simulated.run(policy, on_decision)
    assert np.isfinite(seen).all()
    assert len(set(seen)) > 10


def test_record_holds_what_the_network_thought_of_the_nodes(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    arguments = ["simulate", "etl:2", "--cluster", "edge", "--policy", "learned"]
    assert command([*arguments, "--record", str(path), "--json"]) == 0
    decisions = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    scored = [
        candidate["score"]
        for decision in decisions
        for candidate in decision["candidates"]
        if candidate["score"] is not None
    ]
    assert len(scored) > len(decisions)
    assert max(scored) <= 0.0
    assert command(["replay", str(path)]) == 0


def test_bundle_names_exactly_what_it_holds(copy: Path) -> None:
    bundle = read_bundle(copy)
    assert bundle.digest == default_bundle().digest
    assert {path.name for path in copy.iterdir()} == {*FILES, MANIFEST}
    assert sum(path.stat().st_size for path in copy.iterdir()) < 5_000_000


@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_is_noticed(copy: Path, name: str) -> None:
    path = copy / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(FormatError, match=f"{name}: damaged or changed"):
        read_bundle(copy)
    path.write_bytes(bytes(content[: len(content) // 2]))
    with pytest.raises(FormatError, match=f"{name}: damaged or changed"):
        read_bundle(copy)
    path.unlink()
    with pytest.raises(FormatError, match=f"{name}: cannot be read"):
        read_bundle(copy)


def test_foreign_and_outdated_bundles_are_refused(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such folder"):
        read_bundle(tmp_path / "none")
    with pytest.raises(FormatError, match="is no bundle"):
        read_bundle(tmp_path)
    text = (copy / DESCRIPTION).read_text()
    version = f"schema_version: {schema.VERSION}"
    camel = f"schemaVersion: {schema.VERSION}"
    found = version if version in text else camel
    for old, new, message in (
        (found, found.replace(str(schema.VERSION), "1"), "found 1, but this version"),
        ("maxTasks: 8", "maxTasks: 9", "made for 9 tasks x 8 nodes"),
        ("kind: Bundle", "kind: Cluster", "expected 'Bundle'"),
        ("  objective:", "  objectives:", "unknown key; did you mean 'objective'"),
    ):
        assert old in text
        (copy / DESCRIPTION).write_text(text.replace(old, new))
        resign(copy)
        with pytest.raises(FormatError, match=message):
            read_bundle(copy)
    (copy / DESCRIPTION).write_text(text)
    (copy / MODEL).write_bytes(b"no model at all")
    resign(copy)
    with pytest.raises(FormatError, match="is no ONNX model"):
        Learned("x", read_bundle(copy))
    (copy / CARD).write_bytes(b"\xff")
    resign(copy)
    with pytest.raises(FormatError, match=r"card\.md: not UTF-8"):
        read_bundle(copy)
    manifest = (copy / MANIFEST).read_text()
    (copy / MANIFEST).write_text(manifest + f"{'0' * 64}  evil.py\n")
    with pytest.raises(FormatError, match=r"lists evil\.py"):
        read_bundle(copy)
    (copy / MANIFEST).write_text(manifest.replace("  card.md", "  ../card.md"))
    with pytest.raises(FormatError, match=f"{MANIFEST}:5: expected one"):
        read_bundle(copy)


def test_foreign_networks_are_refused(copy: Path) -> None:
    model = onnx.load_model_from_string((copy / MODEL).read_bytes())
    fine = model.SerializeToString()
    model.graph.output[1].name = "worth"
    renamed = model.SerializeToString()
    for content, message in (
        (fine[: len(fine) // 2], "is no ONNX model"),
        (renamed, "is no ONNX model|a policy takes"),
    ):
        (copy / MODEL).write_bytes(content)
        resign(copy)
        with pytest.raises(FormatError, match=message):
            Learned("x", read_bundle(copy))
    (copy / MODEL).write_bytes(fine)
    resign(copy)
    Learned("x", read_bundle(copy))


def test_current_is_swapped_at_once_or_not_at_all(copy: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    make_current(link, default_bundle().folder)
    assert read_bundle(link).folder == default_bundle().folder
    make_current(link, copy)
    assert read_bundle(link).folder == copy
    spoiled = tmp_path / "spoiled"
    shutil.copytree(copy, spoiled)
    (spoiled / MODEL).write_bytes(b"")
    with pytest.raises(FormatError, match="damaged or changed"):
        make_current(link, spoiled)
    assert read_bundle(link).folder == copy
    with pytest.raises(OutputError, match="is no symbolic link"):
        make_current(copy, default_bundle().folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "current", "spoiled"]


def test_policies_are_named_by_folder_file_and_objective(copy: Path, tmp_path: Path) -> None:
    learned, cheap, named = policies_of(["learned", "learned:cost=1+completion=3", str(copy)])
    assert isinstance(learned, Learned)
    assert isinstance(cheap, Learned)
    assert isinstance(named, Learned)
    assert cheap.name == "learned:cost=1+completion=3"
    assert cheap.objective == pytest.approx([0.75, 0.0, 0.25, 0.0])
    assert named.bundle.digest == learned.bundle.digest
    assert policies_of([f"{copy}/candidates.yaml"])[0].name == f"{copy}/candidates.yaml"
    for name, message in (
        ("heft:cost=1", "'heft' takes no objective"),
        ("learned:costs=1", "no aim 'costs'; did you mean 'cost'"),
        ("learned:cost=-1", "cost is -1"),
        ("learned:cost=0", "all weights are 0"),
        ("learned:cost=1+cost=2", "'cost' is weighed twice"),
        ("learned:cost=much", "'cost=much' is no weight"),
        (f"{tmp_path}/none", "no such file"),
        (f"{copy}/candidates.yaml:cost=x", "is no weight"),
    ):
        with pytest.raises(InputError, match=message):
            policies_of([name])


def test_serving_needs_no_torch() -> None:
    code = (
        "import sys\n"
        "from dagsail.api import read, simulate\n"
        "simulate(read('etl:2'), cluster='edge', policy='learned')\n"
        "print([name for name in ('torch', 'safetensors', 'cma') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
