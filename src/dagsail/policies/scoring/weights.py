"""Weights of a scorer: one number a feature of `schema`, and the files that hold them."""

from __future__ import annotations

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
from dagsail.scalars import nearest

Weights = NDArray[np.float64]
"""float64 (NUM_TASK + NUM_PAIR + NUM_WAIT,), in the order of the schema."""

PARTS: Final = {"task": schema.TASK, "pair": schema.PAIR, "wait": schema.WAIT}


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


class ScorerWeights(Strict, frozen=True):
    """A file of weights."""

    api_version: ApiVersion
    kind: Literal["ScorerWeights"]
    metadata: Metadata
    spec: Spec


def read_weights(text: str, source: str) -> Weights:
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
    named = {"task": spec.task, "pair": spec.pair, "wait": spec.wait}
    for part, values in named.items():
        known = [feature.name for feature in PARTS[part]]
        for name, value in values.items():
            if name not in known:
                hint = nearest(name, known) or f"allowed are {', '.join(known)}"
                raise FormatError(f"{source}: spec.{part}.{name}: no such feature; {hint}")
            if not np.isfinite(value):
                raise FormatError(f"{source}: spec.{part}.{name}: found {value}, expected a number")
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


def write_weights(weights: Weights, name: str) -> str:
    """The text of a file of weights, rounded to three digits after the point."""
    spec: dict[str, Any] = {"schemaVersion": schema.VERSION}
    values = iter(weights.tolist())
    for part, features in PARTS.items():
        spec[part] = {feature.name: round(next(values), 3) for feature in features}
    document = {
        "apiVersion": API_VERSION,
        "kind": "ScorerWeights",
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(document, sort_keys=False)


def preset() -> Weights:
    """The weights that come with Dagsail."""
    source = "preset.yaml"
    text = resources.files("dagsail.policies.scoring").joinpath(source).read_text("utf-8")
    return read_weights(text, source)
