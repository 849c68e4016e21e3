"""The native scenario format: every key, every default, every refusal."""

from __future__ import annotations

import pytest

from dagsail.clusters.scenario_file import read_scenario
from dagsail.domain.errors import FormatError, ScenarioError
from dagsail.domain.scenario import (
    Arrivals,
    Fairness,
    Faults,
    ForeignLoad,
    Interference,
    NodeChange,
    Preemption,
    Runtimes,
    Scenario,
    Startup,
    Transfers,
)

FULL = """
apiVersion: dagsail.io/v1alpha1
kind: Scenario
metadata: {name: rough}
spec:
  arrivals: {kind: burst, load: 0.9, numWorkflows: 7, burstFactor: 12, burstRatio: 0.2}
  runtimes:
    noise: 0.4
    stragglerRatio: 0.1
    stragglerFactor: 8
    heavyTailRatio: 0.05
    heavyTailAlpha: 2
  startup: {containerS: 1.5, imagePull: true, registryBytesPerS: 1Gbit}
  transfers:
    enabled: false
    fairSharing: true
    stageIn: true
    latencyJitter: 0.3
    bandwidthJitter: 0.2
  interference: {memoryBandwidth: 0.5, disk: 0.6, diskDrift: 0.9, intervalS: 1m}
  faults:
    nodeMtbfS: 1d
    nodeMttrS: 5m
    spotMtbfS: 6h
    spotNoticeS: 30
    taskFailureRatio: 0.01
    oomRatio: 0.02
    oomGrowth: 2
    maxRetries: 5
  foreignLoad: {meanRatio: 0.2, tideRatio: 0.1, noiseRatio: 0.05, intervalS: 60}
  nodeChanges: [{nodeType: a, joinsS: 1h}, {nodeType: b, leavesS: 2h}]
  fairness: {maxWaitS: {P0: 1m, P3: 1h}, tenantQuota: {x: 0.5}}
  preemption: {enabled: true}
"""
HEAD = "kind: Scenario\nmetadata: {name: s}\n"


def test_reads_every_key() -> None:
    assert read_scenario(FULL, "s.yaml") == Scenario(
        name="rough",
        arrivals=Arrivals(
            kind="burst", load=0.9, num_workflows=7, burst_factor=12, burst_ratio=0.2
        ),
        runtimes=Runtimes(
            noise=0.4,
            straggler_ratio=0.1,
            straggler_factor=8,
            heavy_tail_ratio=0.05,
            heavy_tail_alpha=2,
        ),
        startup=Startup(container_s=1.5, image_pull=True, registry_bytes_per_s=125e6),
        transfers=Transfers(
            enabled=False,
            fair_sharing=True,
            stage_in=True,
            latency_jitter=0.3,
            bandwidth_jitter=0.2,
        ),
        interference=Interference(memory_bandwidth=0.5, disk=0.6, disk_drift=0.9, interval_s=60),
        faults=Faults(
            node_mtbf_s=86400,
            node_mttr_s=300,
            spot_mtbf_s=21600,
            spot_notice_s=30,
            task_failure_ratio=0.01,
            oom_ratio=0.02,
            oom_growth=2,
            max_retries=5,
        ),
        foreign_load=ForeignLoad(mean_ratio=0.2, tide_ratio=0.1, noise_ratio=0.05, interval_s=60),
        node_changes=(
            NodeChange(node_type="a", joins_s=3600),
            NodeChange(node_type="b", leaves_s=7200),
        ),
        fairness=Fairness(max_wait_s={"P0": 60, "P3": 3600}, tenant_quota={"x": 0.5}),
        preemption=Preemption(enabled=True),
    )


@pytest.mark.parametrize("spec", ["", "spec: {}", "spec: {runtimes: {}, fairness: {}}"])
def test_what_is_left_out_keeps_its_default(spec: str) -> None:
    assert read_scenario(HEAD + spec, "s.yaml") == Scenario(name="s")


def test_holds_plain_numbers_only() -> None:
    scenario = read_scenario(FULL, "s.yaml")
    assert type(scenario.runtimes.noise) is float
    assert type(scenario.faults.node_mtbf_s) is float
    assert type(scenario.startup.registry_bytes_per_s) is float
    assert type(scenario.node_changes[0].joins_s) is float
    assert {type(seconds) for seconds in scenario.fairness.max_wait_s.values()} == {float}


def test_exponents_need_no_dot() -> None:
    scenario = read_scenario(
        f"{HEAD}spec: {{runtimes: {{noise: 1e-1}}, startup: {{registryBytesPerS: 100e6}}}}", "s"
    )
    assert scenario == Scenario(name="s", runtimes=Runtimes(noise=0.1))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{runtime: {}}", "spec.runtime: unknown key; did you mean 'runtimes'?"),
        ("{faults: {nodeMtbf: 1}}", "spec.faults.nodeMtbf: unknown key; did you mean 'nodeMtbfS'?"),
        ("{faults: {node_mtbf_s: 1}}", "spec.faults.node_mtbf_s: unknown key; did you mean 'node"),
        ("{name: x}", "spec.name: unknown key; allowed are arrivals, runtimes"),
        ("{runtimes: 3}", "spec.runtimes: found 3, expected a mapping"),
        ("{runtimes: {noise: a lot}}", "spec.runtimes.noise: found 'a lot', expected a finite"),
        ("{runtimes: {noise: .nan}}", "spec.runtimes.noise: found nan, expected a finite number"),
        ("{runtimes: {noise: true}}", "spec.runtimes.noise: found true, expected a finite number"),
        ("{faults: {nodeMtbfS: -1}}", "spec.faults.nodeMtbfS: found -1; it must not be negative"),
        ("{faults: {nodeMtbfS: 1y}}", "spec.faults.nodeMtbfS: found '1y', expected seconds or a"),
        ("{faults: {maxRetries: 1.5}}", "spec.faults.maxRetries: found 1.5, expected a whole"),
        ("{faults: {maxRetries: -1}}", "spec.faults.maxRetries: found -1, expected a whole"),
        ("{startup: {registryBytesPerS: 0}}", "spec.startup.registryBytesPerS: found 0; it must"),
        (
            "{arrivals: {kind: posson}}",
            "spec.arrivals.kind: found 'posson'; did you mean 'poisson'",
        ),
        ("{transfers: {enabled: 1}}", "spec.transfers.enabled: found 1, expected true or false"),
        ("{nodeChanges: [{}]}", "spec.nodeChanges[0]: the key 'nodeType' is missing"),
        ("{fairness: {maxWaitS: {P1: x}}}", "spec.fairness.maxWaitS[P1]: found 'x', expected sec"),
        ("null", "spec: found null, expected a mapping"),
    ],
)
def test_refuses_a_bad_value_and_names_its_place(spec: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_scenario(f"{HEAD}spec: {spec}", "s.yaml")
    assert str(caught.value).startswith(f"s.yaml: {message}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{runtimes: {noise: -1}}", "scenario 's': runtimes.noise is -1.0; it must be finite and"),
        ("{faults: {oomRatio: 2}}", "scenario 's': faults.oom_ratio is 2.0; a ratio must be at"),
        ("{arrivals: {load: 0}}", "scenario 's': arrivals.load is 0.0; it must be above 0"),
        ("{interference: {diskDrift: 1}}", "scenario 's': interference.disk_drift is 1.0; it must"),
        ("{fairness: {maxWaitS: {P9: 1}}}", "spec.fairness.maxWaitS: found 'P9'; allowed are P0,"),
    ],
)
def test_refuses_impossible_settings(spec: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_scenario(f"{HEAD}spec: {spec}", "s.yaml")
    assert str(caught.value).startswith(f"s.yaml: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^s\.yaml: holds no document; expected kind: Scenario$"),
        ("kind: Cluster", r"^s\.yaml: kind: found 'Cluster', expected 'Scenario'$"),
        ("kind: Scenario", r"^s\.yaml: top level: the key 'metadata' is missing$"),
        (f"{HEAD}---\n{HEAD}", r"^s\.yaml: holds 2 documents; expected only one$"),
        (f"{HEAD}kind: Scenario", r"^s\.yaml:3:1: not valid YAML \(key 'kind' occurs twice\)$"),
    ],
)
def test_refuses_what_is_no_scenario(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_scenario(text, "s.yaml")
