"""Families: parametrised generators of workflows that look like what clusters really run.

Each entry loads to a `dagsail.workloads.families.family.Family`. The sizes, widths, requests and
durations follow public traces where one exists; each parameter says which, or that it is an
assumption.
"""

from __future__ import annotations

from typing import Final

from dagsail.registry import Registry

FAMILIES: Final = Registry("family", "families")

FAMILIES.add(
    "etl",
    f"{__name__}.etl:FAMILY",
    "Nightly batch: extract, transform per partition, shuffle joins, load; gigabytes on edges.",
)
FAMILIES.add(
    "ai-training",
    f"{__name__}.ai_training:FAMILY",
    "Data preparation on CPUs, training or sweeps on 1-8 GPUs for hours, evaluation, release.",
)
FAMILIES.add(
    "microservices",
    f"{__name__}.microservices:FAMILY",
    "Call trees of short, small, chatty tasks with start and finish deadlines of seconds.",
)
FAMILIES.add(
    "streaming",
    f"{__name__}.streaming:FAMILY",
    "Windows of stream pipelines: ingest, aggregate per key, sink; due within the period.",
)
FAMILIES.add(
    "mixed",
    f"{__name__}.mixed:FAMILY",
    "All four together, in shares that let no one of them make up nearly all the work.",
)

DEFAULT_COUNTS: Final = {
    "etl": 200,
    "ai-training": 150,
    "microservices": 2000,
    "streaming": 600,
    "mixed": 400,
}
"""Workflows of a family unless told otherwise: enough for its load to show. At a load of 0.8 on the
cluster `mixed` they arrive over 3.6 h, 71 h, 52 s, 11 min and 8 h."""
