"""Recording runs and following records: what `simulate --record` and `replay` share."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagsail import compose
from dagsail.domain.errors import FormatError, InputError, StuckError

if TYPE_CHECKING:
    from dagsail.clusters.simulated.cluster import Run, Simulation
    from dagsail.domain.scenario import Scenario
    from dagsail.domain.snapshot import Names
    from dagsail.scheduling.ports import Policy
    from dagsail.scheduling.record import Header, Record, Source


def run_recorded(simulation: Simulation, policy: Policy, setup: compose.Setup, path: Path) -> Run:
    """Run a simulation and write its record.

    Raises:
        OutputError: if the record cannot be written.
        StuckError: if the policy never places some task.
    """
    from dagsail.files import writing
    from dagsail.scheduling.record import Recorder

    with writing(path, "wb") as stream:
        header = _header(setup, simulation.seed, policy.name)
        return simulation.run(policy, Recorder(stream, header, simulation.names, policy))


def _header(setup: compose.Setup, seed: int, policy: str) -> Header:
    from dagsail.documents import API_VERSION
    from dagsail.scheduling.record import KIND, Header

    return Header(
        api_version=API_VERSION,
        kind=KIND,
        version=compose.version(),
        workload=[_source(name) for name in setup.sources],
        cluster=_source(setup.cluster_source),
        scenario=_scenario_document(setup.scenario),
        seed=seed,
        policy=policy,
    )


def _source(name: str) -> Source:
    from dagsail.scheduling.record import Source

    path = Path(name)
    is_file = path.is_file() and not compose.is_name(name)
    return Source(name, hashlib.sha256(path.read_bytes()).hexdigest() if is_file else None)


def _scenario_document(scenario: Scenario) -> dict[str, Any]:
    from dagsail.documents import API_VERSION

    settings = _camel_keys(dataclasses.asdict(scenario))
    name = settings.pop("name")
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": settings,
    }


def _camel_keys(value: Any) -> Any:
    """Keys of dataclasses in the notation of files; keys of mappings (P0, tenants) stay."""
    if isinstance(value, dict):
        return {_camel(key): _camel_keys(item) for key, item in value.items()}
    return [_camel_keys(item) for item in value] if isinstance(value, list | tuple) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def setup_of_record(record: Record, source: str) -> compose.Setup:
    """What was simulated, read again.

    Raises:
        InputError: if a file has changed since, or cannot be read.
    """
    from dagsail.clusters.scenario_file import read_scenario

    header = record.header
    for recorded in (*header.workload, header.cluster):
        if recorded.sha256 is not None and _source(recorded.name) != recorded:
            raise InputError(
                f"{source}: {recorded.name} is gone or has changed since the run was recorded"
            )
    scenario = read_scenario(json.dumps(header.scenario), f"{source}: scenario")
    return compose.setup_for(
        [recorded.name for recorded in header.workload], header.cluster.name, scenario
    )


def follow(record: Record, setup: compose.Setup, source: str) -> Run:
    """Simulate again, placing what the record placed.

    Raises:
        InputError: if the record and the simulation part; names the line.
    """
    import numpy as np

    from dagsail.clusters.simulated.cluster import Simulation
    from dagsail.policies.recorded import Recorded

    seed = record.header.seed
    simulation = Simulation(setup.arrivals(seed), setup.cluster, setup.scenario, seed)
    rows = _placements(record, simulation.names, simulation.snapshot.tasks["workflow"], source)
    recorded = Recorded(np.array(rows, np.float64).reshape(-1, 3))
    try:
        run = simulation.run(recorded.rule)
    except StuckError:
        run = None
    followed = recorded.num_followed
    if run is None or followed < len(rows):
        raise InputError(
            f"{source}:{followed + 2}: the simulation parts from the record here: it was made by"
            " another version, or the file is not complete; record the run again"
        )
    return dataclasses.replace(run, policy=record.header.policy)


def _placements(
    record: Record, names: Names, workflow_of: Any, source: str
) -> list[tuple[float, int, int]]:
    """Time, task and first node of each placement, by position."""
    nodes = {name: position for position, name in enumerate(names.nodes)}
    tasks = {
        (names.workflows[workflow], names.tasks[task]): task
        for task, workflow in enumerate(workflow_of.tolist())
    }
    rows = []
    for line, decision in enumerate(record.decisions, start=2):
        task = tasks.get((decision.workflow, decision.task))
        node = nodes.get(decision.nodes[0]) if decision.nodes else None
        if task is None or node is None:
            raise FormatError(f"{source}:{line}: names a task or node that the run does not have")
        rows.append((decision.time_s, task, node))
    return rows
