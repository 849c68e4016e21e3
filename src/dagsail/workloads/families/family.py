"""Family: a named generator with its default parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from numpy.random import Generator

from dagsail.domain.workflow import Workflow

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Family(Generic[P]):
    """What a registry entry loads to.

    Attributes:
        name: as registered.
        parameters: the defaults; `dataclasses.replace` them to get another workload.
        generate: makes workflow number `index` from parameters and a source of randomness.
    """

    name: str
    parameters: P
    generate: Callable[[P, Generator, int], Workflow]

    def generate_many(self, count: int, rng: Generator) -> list[Workflow]:
        """`count` workflows with unique ids; the first n of them do not depend on `count`."""
        return [self.generate(self.parameters, rng, index) for index in range(count)]
