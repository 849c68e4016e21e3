"""Weights of a scorer: one number a feature of `schema`, and the files that hold them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final, Literal

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from dagsail.documents import API_VERSION, ApiVersion, Metadata, Strict, read_document
from dagsail.domain.errors import FormatError
from dagsail.policies.scoring import schema
from dagsail.policies.scoring.objective import AIMS, DEFAULT, Objective
from dagsail.scalars import nearest

Weights = NDArray[np.float64]
"""float64 (NUM_WEIGHTS,), in the order of the schema."""
ByAim = NDArray[np.float64]
"""Weights for each aim alone; those for an objective lie between them. (NUM_AIMS, NUM_WEIGHTS)."""
NUM_WEIGHTS: Final = schema.NUM_TASK + schema.NUM_PAIR + schema.NUM_WAIT

PARTS: Final = {"task": schema.TASK, "pair": schema.PAIR, "wait": schema.WAIT}


class Aim(Strict, frozen=True):
    """What is added to the weights where the objective is this aim alone, else its share of it."""

    task: dict[str, float] = msgspec.field(default_factory=dict)
    """To how urgent a task is."""
    pair: dict[str, float] = msgspec.field(default_factory=dict)
    """To how good a node is for it."""
    wait: dict[str, float] = msgspec.field(default_factory=dict)
    """To waiting for a busy node."""


class Spec(Strict, frozen=True):
    """What each feature weighs; those not named weigh nothing."""

    schema_version: int
    """Version of the feature schema that the weights were tuned for."""
    task: dict[str, float]
    """How urgent a task is: the highest sum goes first."""
    pair: dict[str, float]
    """How good a node is for it: the highest sum takes it."""
    wait: dict[str, float] = msgspec.field(default_factory=dict)
    """Whether to wait for a busy node: it waits where the sum is above 0."""
    by_aim: dict[str, Aim] = msgspec.field(default_factory=dict)
    """Changes by the aim that the operator weighs: completion, deadline, cost, balance."""


class ScorerWeights(Strict, frozen=True):
    """A file of weights."""

    api_version: ApiVersion
    kind: Literal["ScorerWeights"]
    metadata: Metadata
    spec: Spec


def read_weights(text: str, source: str) -> ByAim:
    """Weights of a native YAML or JSON text.

    Args:
        text: one document.
        source: what messages call the text, usually the file name.

    Raises:
        FormatError: if it is not exactly one `kind: ScorerWeights` of this version's schema.
    """
    spec = read_document(text, source, ScorerWeights).spec
    if spec.schema_version != schema.VERSION:
        raise FormatError(
            f"{source}: spec.schemaVersion: found {spec.schema_version}, but this version of"
            f" Dagsail computes features of schema {schema.VERSION}; tune the weights anew"
        )
    for aim in spec.by_aim:
        if aim not in AIMS:
            hint = nearest(aim, AIMS) or f"allowed are {', '.join(AIMS)}"
            raise FormatError(f"{source}: spec.byAim.{aim}: no such aim; {hint}")
    common = _checked(spec, f"{source}: spec")
    none = Aim()
    return np.array(
        [
            common + _checked(spec.by_aim.get(aim, none), f"{source}: spec.byAim.{aim}")
            for aim in AIMS
        ]
    )


def _checked(given: Spec | Aim, place: str) -> Weights:
    named = {"task": given.task, "pair": given.pair, "wait": given.wait}
    for part, values in named.items():
        known = [feature.name for feature in PARTS[part]]
        for name, value in values.items():
            if name not in known:
                hint = nearest(name, known) or f"allowed are {', '.join(known)}"
                raise FormatError(f"{place}.{part}.{name}: no such feature; {hint}")
            if not np.isfinite(value):
                raise FormatError(f"{place}.{part}.{name}: found {value}, expected a number")
    return weights_of(named)


def weights_of(named: Mapping[str, Mapping[str, float]]) -> Weights:
    """Weights by part and feature as one array; what is not named weighs nothing."""
    return np.array(
        [
            named.get(part, {}).get(feature.name, 0.0)
            for part, features in PARTS.items()
            for feature in features
        ]
    )


def without_waiting(weights: Weights) -> Weights:
    """The same weights for a scorer that always takes a node with room."""
    return np.concatenate([weights[: -schema.NUM_WAIT], np.zeros(schema.NUM_WAIT)])


def blend(by_aim: ByAim, objective: Objective) -> Weights:
    """The weights for an objective."""
    return np.asarray(objective @ by_aim, np.float64)


def write_weights(by_aim: ByAim, name: str) -> str:
    """The text of a file of weights, rounded to three digits after the point."""
    spec: dict[str, Any] = {"schemaVersion": schema.VERSION, **_named(by_aim[0])}
    changes = {
        aim: _named(row - by_aim[0], leave_out_zeros=True)
        for aim, row in zip(AIMS, by_aim, strict=True)
    }
    if any(changes.values()):
        spec["byAim"] = {aim: parts for aim, parts in changes.items() if parts}
    document = {
        "apiVersion": API_VERSION,
        "kind": "ScorerWeights",
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(document, sort_keys=False)


def _named(weights: Weights, *, leave_out_zeros: bool = False) -> dict[str, dict[str, float]]:
    """Weights by part and feature."""
    values = iter(np.round(weights, 3).tolist())
    named = {
        part: {
            feature.name: value
            for feature in features
            if (value := next(values)) or not leave_out_zeros
        }
        for part, features in PARTS.items()
    }
    return {part: found for part, found in named.items() if found}


@functools.cache
def preset_by_aim() -> ByAim:
    """The weights that come with Dagsail."""
    source = "preset.yaml"
    text = resources.files("dagsail.policies.scoring").joinpath(source).read_text("utf-8")
    weights = read_weights(text, source)
    weights.flags.writeable = False
    return weights


def preset() -> Weights:
    """The weights that come with Dagsail, for the default objective."""
    return blend(preset_by_aim(), DEFAULT)
