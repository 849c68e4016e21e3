"""Mixed: a shared cluster on which all four families run side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from numpy.random import Generator

from dagsail.domain.workflow import Workflow
from dagsail.workloads.families import ai_training, etl, microservices, streaming
from dagsail.workloads.families.ai_training import AiTrainingParameters
from dagsail.workloads.families.draws import Shares, choose
from dagsail.workloads.families.etl import EtlParameters
from dagsail.workloads.families.family import Family
from dagsail.workloads.families.microservices import MicroserviceParameters
from dagsail.workloads.families.streaming import StreamingParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedParameters:
    """Shares of the families, and the parameters of each."""

    shares: Shares[str] = (
        ("etl", 0.32),
        ("ai-training", 0.04),
        ("microservices", 0.34),
        ("streaming", 0.3),
    )
    """By number of workflows. Of the CPU work, ETL then makes up some 60 % and AI training 40 %
    (and all GPU work); streams and microservices, two thirds of the workflows, make up 1 %. On
    the built-in clusters GPUs dominate, with a third to half as much load on CPUs."""
    etl: EtlParameters = field(default_factory=EtlParameters)
    ai_training: AiTrainingParameters = field(default_factory=AiTrainingParameters)
    microservices: MicroserviceParameters = field(default_factory=MicroserviceParameters)
    streaming: StreamingParameters = field(default_factory=StreamingParameters)


_GOLDEN_RATIO: Final = (math.sqrt(5) - 1) / 2
"""Multiples of it, modulo 1, fill the unit interval evenly (Weyl's sequence)."""


def generate(parameters: MixedParameters, rng: Generator, index: int) -> Workflow:
    """A workflow of one of the families; its `family` and id say which.

    The family follows from the index, so that a hundred workflows hold the stated shares almost
    exactly: with four AI trainings at random, the load would jump between seeds. Windows of
    streams lose their recorded time, which the other families do not have.
    """
    match choose(parameters.shares, index * _GOLDEN_RATIO % 1):
        case "etl":
            return etl.generate(parameters.etl, rng, index)
        case "ai-training":
            return ai_training.generate(parameters.ai_training, rng, index)
        case "microservices":
            return microservices.generate(parameters.microservices, rng, index)
        case "streaming":
            window = streaming.generate(parameters.streaming, rng, index)
            return replace(window, submitted_s=None)
        case other:
            raise ValueError(f"the mixed family knows no '{other}'")


FAMILY: Final = Family("mixed", MixedParameters(), generate)
