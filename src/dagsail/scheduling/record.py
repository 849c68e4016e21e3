"""Decision record: one JSON line for each placement, with what was considered and why.

A line holds the time, the task and its nodes, the best candidates with their scores, how many nodes
each rule refused, and a hash of what the decision saw. The first line says what was run. Same run,
same bytes.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec
import numpy as np

from dagsail.domain.errors import FormatError
from dagsail.domain.snapshot import Names, Snapshot
from dagsail.files import read_text
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory
from dagsail.scheduling.ports import Policy

KIND: Final = "Record"
NUM_CANDIDATES: Final = 5
VERDICTS: Final = {
    legality.LEGAL: "legal",
    legality.NOT_ELIGIBLE: "not_eligible",
    legality.NODE_CLOSED: "node_closed",
    legality.NO_ROOM: "no_room",
    legality.NO_DEVICE: "no_device",
    legality.RESERVED: "reserved",
    legality.OVER_QUOTA: "over_quota",
}
"""Verdicts of `scheduling.constraints.legality` as a record writes them."""

_CHANGED_BY_DECISION: Final = ("nodes", "node_free", "node_devices", "tenant_used")
"""Arrays that say what is free: a verdict before the placement needs them as they were."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was read: an argument of the command line, and the hash of the file behind it."""

    name: str
    sha256: str | None = None


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The first line: everything that the run depends on."""

    api_version: str
    kind: str
    version: str
    """Of Dagsail."""
    workload: list[Source]
    cluster: Source
    scenario: dict[str, Any]
    """As a native document, with nothing left open."""
    seed: int
    policy: str


class Candidate(msgspec.Struct, frozen=True):
    """A legal node and what the policy thinks of it; None where it has no score."""

    node: str
    score: float | None


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One placement.

    Attributes:
        time_s: of the simulation.
        workflow, task, attempt: what was placed; attempts count from 0.
        nodes: one for each worker.
        candidates: the best legal nodes for the task, best first, and the chosen one.
        verdicts: number of nodes by verdict.
        policy: who chose.
        snapshot: hash of what the decision saw.
    """

    time_s: float
    workflow: str
    task: str
    attempt: int
    nodes: list[str]
    candidates: list[Candidate]
    verdicts: dict[str, int]
    policy: str
    snapshot: str


class Recorder:
    """Writes a line for each placement; to be given to a run as `on_decision`."""

    def __init__(self, stream: IO[bytes], header: Header, names: Names, policy: Policy) -> None:
        self._stream = stream
        self._names = names
        self._policy = policy
        self._encoder = msgspec.json.Encoder()
        self._before: Snapshot | None = None
        self._write(header)

    def __call__(self, snapshot: Snapshot, memory: Memory, decide: Callable[[], int]) -> int:
        """Decide, and write what was decided."""
        before = self._remember(snapshot)
        seen = snapshot_hash(snapshot)
        placed = decide()
        for task in snapshot.placed[snapshot.status[0]["num_placed"] - placed :][:placed].tolist():
            self._write(self._decision(before, snapshot, memory, task, seen))
        return placed

    def _remember(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot as it is before the decision."""
        if self._before is None:
            copies = {name: getattr(snapshot, name).copy() for name in _CHANGED_BY_DECISION}
            self._before = snapshot.replace(**copies)
            return self._before
        for name in _CHANGED_BY_DECISION:
            np.copyto(getattr(self._before, name), getattr(snapshot, name))
        return self._before

    def _decision(
        self, before: Snapshot, snapshot: Snapshot, memory: Memory, task: int, seen: str
    ) -> Decision:
        row = snapshot.tasks[task]
        first = int(row["worker_start"])
        workers = snapshot.workers["node"][first : first + int(row["num_workers"])].tolist()
        codes = [legality.verdict(before, task, node) for node in range(len(before.nodes))]
        names = self._names
        return Decision(
            time_s=float(snapshot.status[0]["now_s"]),
            workflow=names.workflows[int(row["workflow"])],
            task=names.tasks[task],
            attempt=int(row["attempt"]),
            nodes=[names.nodes[node] for node in workers],
            candidates=self._candidates(before, memory, task, codes, workers[0]),
            verdicts={
                label: count for code, label in VERDICTS.items() if (count := codes.count(code))
            },
            policy=self._policy.name,
            snapshot=seen,
        )

    def _candidates(
        self, before: Snapshot, memory: Memory, task: int, codes: Sequence[int], chosen: int
    ) -> list[Candidate]:
        legal = [node for node, code in enumerate(codes) if code == legality.LEGAL]
        scores = [math.nan] * len(codes)
        if (score_nodes := getattr(self._policy, "scores", None)) is not None:
            # On a copy: a score that draws random numbers must not disturb the run.
            scores = score_nodes(before, memory.copy(), task).tolist()
        legal.sort(key=lambda node: (math.isnan(scores[node]), -scores[node]))
        best = legal[:NUM_CANDIDATES]
        if chosen not in best:
            best.append(chosen)
        return [Candidate(self._names.nodes[node], _finite(scores[node])) for node in best]

    def _write(self, line: Header | Decision) -> None:
        self._stream.write(self._encoder.encode(line) + b"\n")


def _finite(score: float) -> float | None:
    return score if math.isfinite(score) else None


def snapshot_hash(snapshot: Snapshot) -> str:
    """Sixteen hex digits of what a decision sees of tasks and nodes; equal where that is equal."""
    digest = hashlib.blake2b(digest_size=8)
    digest.update(snapshot.status["now_s"].tobytes())
    for column in ("state", "attempt"):
        digest.update(snapshot.tasks[column].tobytes())
    digest.update(snapshot.nodes["state"].tobytes())
    digest.update(snapshot.node_free.tobytes())
    digest.update(snapshot.node_devices.tobytes())
    return digest.hexdigest()


class Record(NamedTuple):
    """A record as read."""

    header: Header
    decisions: tuple[Decision, ...]


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        FormatError: if it is no record, is cut off, or a line has a wrong value; names the line.
    """
    lines = read_text(path).splitlines()
    header: Header = _decode(lines[0], Header, f"{path}:1")
    if header.kind != KIND:
        raise FormatError(f"{path}:1: kind is '{header.kind[:40]}', expected '{KIND}'")
    return Record(header, tuple(_decisions(lines, path)))


def _decisions(lines: Sequence[str], path: Path) -> Iterator[Decision]:
    for number, line in enumerate(lines[1:], start=2):
        yield _decode(line, Decision, f"{path}:{number}")


def _decode(line: str, kind: Any, where: str) -> Any:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise FormatError(f"{where}: no line of a decision record ({error})") from None
    except RecursionError:
        raise FormatError(f"{where}: nested too deeply") from None
