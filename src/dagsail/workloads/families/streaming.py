"""Streaming: a few long-lived pipelines; each window of each is a small workflow.

```
ingest (partition) --+--> aggregate (key range) --+--> sink
ingest (partition) --+--> aggregate (key range) --+          one shuffle; due before the next window
```
Windows come in turn: workflow 0 is the first window of the first pipeline, workflow 1 the first
of the second. Their `submitted_s` is when the window closes, so `recorded` arrivals are periodic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from numpy.random import Generator

from dagsail.domain.cluster import ZONE_LABEL
from dagsail.domain.placement import Placement
from dagsail.domain.units import GIB, MIB
from dagsail.domain.workflow import Priority, Workflow
from dagsail.workloads.families.dag_builder import DagBuilder, Image, Program, request
from dagsail.workloads.families.draws import jitter
from dagsail.workloads.families.family import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A stream pipeline that runs for months with one shape.

    Attributes:
        name: which one.
        tenant: who owns it.
        priority: of all its windows.
        period_s: length of a window, and the time within which it must be done.
        start_ratio: latest start over the period.
        num_partitions: of the source.
        num_key_ranges: tasks of the aggregation.
        partition_bytes: mean data of one partition in one window.
    """

    name: str
    tenant: str
    priority: Priority
    period_s: float
    start_ratio: float
    num_partitions: int
    num_key_ranges: int
    partition_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingParameters:
    """Pipelines and speeds; all are assumptions, in the range of common deployments.

    At default speeds a window takes a quarter to half of its period (median) when nothing waits;
    one in a hundred of the largest takes longer.
    """

    pipelines: tuple[Pipeline, ...] = (
        Pipeline(
            name="fraud",
            tenant="team-a",
            priority=Priority.P0,
            period_s=30,
            start_ratio=0.1,
            num_partitions=8,
            num_key_ranges=4,
            partition_bytes=25e6,
        ),
        Pipeline(
            name="clicks",
            tenant="team-b",
            priority=Priority.P1,
            period_s=60,
            start_ratio=0.25,
            num_partitions=24,
            num_key_ranges=8,
            partition_bytes=60e6,
        ),
        Pipeline(
            name="sensors",
            tenant="team-c",
            priority=Priority.P2,
            period_s=120,
            start_ratio=0.5,
            num_partitions=16,
            num_key_ranges=8,
            partition_bytes=200e6,
        ),
        Pipeline(
            name="logs",
            tenant="team-d",
            priority=Priority.P3,
            period_s=300,
            start_ratio=0.5,
            num_partitions=32,
            num_key_ranges=8,
            partition_bytes=300e6,
        ),
    )
    """At least one."""
    window_sigma: float = 0.3
    """Sigma of the log-normal factor on the data of one window."""
    partition_sigma: float = 0.2
    """Likewise on each partition: skew of keys."""
    ingest_bytes_per_s: float = 15e6
    aggregate_bytes_per_s: float = 10e6
    sink_bytes_per_s: float = 30e6
    """Input that one task of the stage works through a second, after half a second of set-up."""
    ingest_ratio: float = 0.5
    aggregate_ratio: float = 0.2
    """Output over input of a stage."""


_SOURCE_IMAGE: Final = Image("stream-source:3.0", 140 * MIB)
_ENGINE_IMAGE: Final = Image("stream-engine:1.20", 420 * MIB)
_SETUP_S: Final = 0.5


def generate(parameters: StreamingParameters, rng: Generator, index: int) -> Workflow:
    """Window number `index // pipelines` of pipeline number `index % pipelines`."""
    window, number = divmod(index, len(parameters.pipelines))
    pipeline = parameters.pipelines[number]
    dag = DagBuilder()
    ingested = _ingest(dag, parameters, rng, pipeline)
    size = dag.output_bytes(ingested) / pipeline.num_key_ranges
    aggregated = []
    for _ in range(pipeline.num_key_ranges):
        part = size * jitter(rng, parameters.partition_sigma)
        aggregate = dag.add(
            _program(pipeline, "aggregate"),
            runtime_s=_SETUP_S + part / parameters.aggregate_bytes_per_s,
            output_bytes=part * parameters.aggregate_ratio,
            after=ingested,
            share=1 / pipeline.num_key_ranges,
        )
        aggregated.append(aggregate)
    dag.add(
        _program(pipeline, "sink"),
        runtime_s=_SETUP_S + dag.output_bytes(aggregated) / parameters.sink_bytes_per_s,
        after=aggregated,
    )
    return dag.build(
        f"streaming-{index:04d}",
        "streaming",
        tenant=pipeline.tenant,
        priority=pipeline.priority,
        deadline_s=pipeline.period_s,
        start_deadline_s=pipeline.period_s * pipeline.start_ratio,
        submitted_s=(window + 1) * pipeline.period_s,
    )


def _ingest(
    dag: DagBuilder, parameters: StreamingParameters, rng: Generator, pipeline: Pipeline
) -> list[str]:
    window_bytes = pipeline.partition_bytes * jitter(rng, parameters.window_sigma)
    ingested = []
    for _ in range(pipeline.num_partitions):
        size = window_bytes * jitter(rng, parameters.partition_sigma)
        ingest = dag.add(
            _program(pipeline, "ingest"),
            runtime_s=_SETUP_S + size / parameters.ingest_bytes_per_s,
            input_bytes=size,
            output_bytes=size * parameters.ingest_ratio,
        )
        ingested.append(ingest)
    return ingested


def _program(pipeline: Pipeline, stage: str) -> Program:
    """The kind carries the pipeline's name: its windows are alike, those of others are not."""
    return replace(_STAGES[stage], kind=f"{pipeline.name}-{stage}")


_STAGES: Final = {
    "ingest": Program(
        kind="ingest",
        image=_SOURCE_IMAGE,
        request=request(500, 512 * MIB),
        io_demand=0.1,
        placement=Placement(spread_over=ZONE_LABEL),
    ),
    "aggregate": Program(
        kind="aggregate",
        image=_ENGINE_IMAGE,
        request=request(1000, 2 * GIB),
        memory_bandwidth_demand=0.2,
        placement=Placement(near_parents=True),
    ),
    "sink": Program(
        kind="sink",
        image=_SOURCE_IMAGE,
        request=request(500, GIB),
        io_demand=0.3,
        is_critical=True,
        placement=Placement(near_parents=True),
    ),
}

FAMILY: Final = Family("streaming", StreamingParameters(), generate)
