"""Nightly batch: a fact table and its dimensions are extracted, transformed, joined and loaded.

```
extract --> transform --+                                   one each per partition of a table
extract --> transform --+--> join --> join --> aggregate --> load --> publish
extract --> transform -----------------^                    shuffles: all to all
```
Shape: Alibaba's 2018 batch jobs are 4 stages deep (median; 95th percentile 7) and have 9
instances a stage at the 75th and 356 at the 95th percentile; TPC-H on Spark has 8 stages (95th
percentile 15). A task here is one partition of a stage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from numpy.random import Generator

from dagsail.domain.placement import Placement
from dagsail.domain.units import GIB, KIB, MIB
from dagsail.domain.workflow import Workflow
from dagsail.workloads.families.dag_builder import DagBuilder, Image, Program, request
from dagsail.workloads.families.draws import LogNormal, Shares, jitter, pick
from dagsail.workloads.families.family import Family
from dagsail.workloads.families.urgency import TENANTS, Urgencies, Urgency, draw_priority


@dataclass(frozen=True, slots=True, kw_only=True)
class EtlParameters:
    """Sizes and speeds of ETL workflows.

    Data volumes and throughputs are assumptions: what one core of a JVM or Python data engine
    moves. Requests follow Alibaba 2018 (half a core to one core and some 0.3 % of a machine's
    memory for most tasks), with joins above it; all fit a node of 4 cores and 8 GiB.
    """

    num_tables: Shares[int] = ((2, 0.35), (3, 0.35), (4, 0.2), (5, 0.1))
    """The fact table and its dimensions; Alibaba joins have up to 5 inputs (95th percentile)."""
    partitions: LogNormal = LogNormal(6, 0.6, 2, 40)
    """Partitions of the fact table of a common workflow (9 instances a stage: 75th percentile)."""
    wide_ratio: float = 0.08
    """Share of workflows with a wide fact table; Alibaba: a tenth of stages pass 127 instances."""
    wide_partitions: tuple[int, int] = (100, 160)
    """Range of the partitions of a wide fact table."""
    dimension_ratio: tuple[float, float] = (0.1, 0.6)
    """Range of a dimension's partitions over those of the fact table."""
    max_shuffle_partitions: int = 24
    """Most tasks of a join stage."""
    partition_bytes: LogNormal = LogNormal(0.8e9, 0.8, 0.05e9, 8e9)
    """Mean source data of one partition, drawn per workflow."""
    partition_sigma: float = 0.3
    """Skew: sigma of the log-normal factor on each partition's data."""
    runtime_sigma: float = 0.3
    """Sigma of the log-normal factor on each run time, on top of its data volume."""
    extract_bytes_per_s: float = 16e6
    transform_bytes_per_s: float = 8e6
    join_bytes_per_s: float = 8e6
    aggregate_bytes_per_s: float = 12e6
    load_bytes_per_s: float = 20e6
    """Input that one task of the stage works through a second."""
    transform_ratio: float = 0.6
    join_ratio: float = 0.7
    aggregate_ratio: float = 0.25
    """Output over input of a stage."""
    join_memory_bytes: Shares[int] = ((4 * GIB, 0.4), (6 * GIB, 0.6))
    """Memory of a join task: hash tables, so three times that of the other stages."""
    urgencies: Urgencies = (
        Urgency(share=0.05, slack_ratio=(1.5, 2.5), start_deadline_s=300),
        Urgency(share=0.25, slack_ratio=(2, 4), start_deadline_s=900),
        Urgency(share=0.5, slack_ratio=(3, 6), start_deadline_s=3600),
        Urgency(share=0.2, slack_ratio=(5, 10), start_deadline_s=None),
    )
    """P0 must start within 5 minutes; the rest is assumed."""


_ENGINE: Final = Image("etl-engine:3.5", 620 * MIB)
_CONNECTOR: Final = Image("etl-connector:2.1", 180 * MIB)
_CATALOGUE: Final = Image("etl-catalogue:1.4", 90 * MIB)

_EXTRACT: Final = Program(
    kind="extract", image=_CONNECTOR, request=request(1000, GIB), io_demand=0.25
)
_TRANSFORM: Final = Program(
    kind="transform",
    image=_ENGINE,
    request=request(1000, 2 * GIB),
    io_demand=0.1,
    memory_bandwidth_demand=0.1,
)
_AGGREGATE: Final = Program(
    kind="aggregate", image=_ENGINE, request=request(1000, 2 * GIB), memory_bandwidth_demand=0.15
)
_LOAD: Final = Program(
    kind="load", image=_CONNECTOR, request=request(1000, GIB), io_demand=0.35, is_critical=True
)
_PUBLISH: Final = Program(
    kind="publish", image=_CATALOGUE, request=request(250, 256 * MIB), is_critical=True
)
_PUBLISH_S: Final = LogNormal(15, 0.4, 5, 60)
_MIN_RUNTIME_S: Final = 2.0
_RECEIPT_RATIO: Final = 1e-4


def generate(parameters: EtlParameters, rng: Generator, index: int) -> Workflow:
    """ETL workflow number `index`."""
    stages = _Stages(parameters, rng, parameters.partition_bytes.draw(rng))
    join = Program(
        kind="join",
        image=_ENGINE,
        request=request(2000, pick(rng, parameters.join_memory_bytes)),
        io_demand=0.2,
        memory_bandwidth_demand=0.3,
        placement=Placement(wants_local_ssd=True),
    )
    num_partitions = stages.draw_num_partitions()
    num_joins = min(math.ceil(num_partitions / 2), parameters.max_shuffle_partitions)
    joined = stages.read_table(num_partitions)
    for _ in range(pick(rng, parameters.num_tables) - 1):
        ratio = float(rng.uniform(*parameters.dimension_ratio))
        dimension = stages.read_table(math.ceil(num_partitions * ratio))
        joined = stages.shuffle(
            join,
            num_joins,
            [*joined, *dimension],
            parameters.join_bytes_per_s,
            parameters.join_ratio,
        )
    aggregated = stages.shuffle(
        _AGGREGATE,
        math.ceil(num_joins / 2),
        joined,
        parameters.aggregate_bytes_per_s,
        parameters.aggregate_ratio,
    )
    loaded = stages.shuffle(
        _LOAD, math.ceil(num_joins / 4), aggregated, parameters.load_bytes_per_s, _RECEIPT_RATIO
    )
    dag = stages.dag
    dag.add(_PUBLISH, runtime_s=_PUBLISH_S.draw(rng), output_bytes=64 * KIB, after=loaded)
    priority = draw_priority(rng, parameters.urgencies)
    urgency = parameters.urgencies[priority]
    return dag.build(
        f"etl-{index:04d}",
        "etl",
        tenant=pick(rng, TENANTS),
        priority=priority,
        deadline_s=urgency.deadline_s(rng, dag.critical_path_s),
        start_deadline_s=urgency.start_deadline_s,
    )


class _Stages:
    """Adds stages of one workflow; each method returns the tasks that the next stage reads."""

    def __init__(self, parameters: EtlParameters, rng: Generator, partition_bytes: float) -> None:
        self.dag = DagBuilder()
        self._parameters = parameters
        self._rng = rng
        self._partition_bytes = partition_bytes

    def draw_num_partitions(self) -> int:
        """Partitions of the fact table: a few, or for a wide workflow over a hundred."""
        if self._rng.random() < self._parameters.wide_ratio:
            return int(self._rng.integers(*self._parameters.wide_partitions, endpoint=True))
        return math.ceil(self._parameters.partitions.draw(self._rng))

    def read_table(self, num_partitions: int) -> list[str]:
        """Extract and transform each partition of a table."""
        parameters = self._parameters
        transformed = []
        for _ in range(num_partitions):
            size = self._partition_bytes * jitter(self._rng, parameters.partition_sigma)
            extract = self.dag.add(
                _EXTRACT,
                runtime_s=self._runtime_s(size / parameters.extract_bytes_per_s),
                input_bytes=size,
                output_bytes=size,
            )
            transform = self.dag.add(
                _TRANSFORM,
                runtime_s=self._runtime_s(size / parameters.transform_bytes_per_s),
                output_bytes=size * parameters.transform_ratio,
                after=[extract],
            )
            transformed.append(transform)
        return transformed

    def shuffle(
        self,
        program: Program,
        num_tasks: int,
        parents: Sequence[str],
        bytes_per_s: float,
        output_ratio: float,
    ) -> list[str]:
        """A stage whose every task reads one partition from every parent."""
        size = self.dag.output_bytes(parents) / num_tasks
        return [
            self.dag.add(
                program,
                runtime_s=self._runtime_s(size / bytes_per_s),
                output_bytes=size * output_ratio,
                after=parents,
                share=1 / num_tasks,
            )
            for _ in range(num_tasks)
        ]

    def _runtime_s(self, seconds: float) -> float:
        return max(seconds * jitter(self._rng, self._parameters.runtime_sigma), _MIN_RUNTIME_S)


FAMILY: Final = Family("etl", EtlParameters(), generate)
