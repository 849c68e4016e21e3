"""Clusters from Kubernetes Node manifests, and what is assumed of machines that say too little.

Reads single nodes, `List` and `NodeList` objects as JSON, and the same as a YAML stream of one or
many documents. What a manifest cannot say is filled from stated assumptions, reported as such:

- Prices in USD an hour, of the size that public clouds ask on demand, in round numbers:
  0.04 a core (memory included) plus the GPUs of `GPU_MODELS`.
- Speeds relative to a V100, from vendors' peak rates and common training benchmarks, in round
  numbers. The openb trace hides the makers' names of G1, G2 and G3. From the machines that carry
  them (96 cores and 384 GiB, 128 cores and 768 GiB with 8 GPUs) G2 is treated as an A10 and
  G3 as an A100. G1 is on no machine of the published list and is treated as the reference.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from dagsail.domain.cluster import GPU_MODEL_LABEL, TYPE_LABEL, Cluster, Node
from dagsail.domain.errors import ClusterError, FormatError
from dagsail.domain.placement import EFFECTS, Taint
from dagsail.domain.units import CPU, GIB, GPU, GPU_MILLI, MEMORY, parse_amount
from dagsail.files import parse_json, parse_yaml
from dagsail.workloads.reading import Repairs

PRICE_USD_PER_CORE_H: Final = 0.04


@dataclass(frozen=True, slots=True)
class GpuModel:
    """What is assumed of one GPU model."""

    speed: float
    """Relative to a V100."""
    price_usd_per_h: float
    """Of one GPU."""


GPU_MODELS: Final[Mapping[str, GpuModel]] = {
    "T4": GpuModel(0.5, 0.5),
    "P100": GpuModel(0.6, 1.5),
    "V100": GpuModel(1.0, 2.5),
    "V100M16": GpuModel(1.0, 2.5),
    "V100M32": GpuModel(1.0, 3.0),
    "A10": GpuModel(1.0, 1.0),
    "A100": GpuModel(2.0, 4.0),
    "H100": GpuModel(4.0, 8.0),
    "G1": GpuModel(1.0, 1.0),
    "G2": GpuModel(1.0, 1.0),
    "G3": GpuModel(2.0, 4.0),
}
_UNKNOWN_MODEL: Final = GpuModel(1.0, 1.0)

_RESOURCES: Final = {"alibabacloud.com/gpu-count": GPU, "alibabacloud.com/gpu-milli": GPU_MILLI}
_KIND: Final = re.compile(r"""\bkind["']?\s*:\s*["']?(\w+)""")
_LABELS: Final = {"alibabacloud.com/gpu-card-model": GPU_MODEL_LABEL}


def make_node(
    name: str,
    allocatable: Mapping[str, int],
    labels: Mapping[str, str],
    taints: tuple[Taint, ...],
    repairs: Repairs,
) -> Node:
    """A node whose type, speed and price follow from its size and GPU model.

    Raises:
        ClusterError: if it has no cpu, or an amount that no machine has.
    """
    num_gpus = allocatable.get(GPU, 0)
    model = labels.get(GPU_MODEL_LABEL, "")
    assumed = _gpu_model(model)
    if num_gpus and assumed is None:
        repairs.note(
            f"GPU model unknown: the speed of a V100 and {_UNKNOWN_MODEL.price_usd_per_h:g}"
            " USD/h assumed",
            f"node '{name}', model '{model[:40]}'",
        )
    assumed = assumed or _UNKNOWN_MODEL
    cores = allocatable.get(CPU, 0) / 1000
    return Node(
        name=name,
        type=labels.get(TYPE_LABEL) or _type(model, allocatable),
        allocatable=allocatable,
        labels=labels,
        taints=taints,
        gpu_speed=assumed.speed,
        price_usd_per_h=cores * PRICE_USD_PER_CORE_H + num_gpus * assumed.price_usd_per_h,
    )


def _gpu_model(label: str) -> GpuModel | None:
    # NVIDIA's feature discovery writes `Tesla-V100-SXM2-16GB` and `NVIDIA-A100-PCIE-40GB`.
    short = label.removeprefix("NVIDIA-").removeprefix("Tesla-").partition("-")[0]
    return GPU_MODELS.get(short)


def _type(model: str, allocatable: Mapping[str, int]) -> str:
    """Machine type by shape, such as `8xG2-96c-384g` or `32c-256g`."""
    num_gpus = allocatable.get(GPU, 0)
    gpus = f"{num_gpus}x{model or 'gpu'}-" if num_gpus else ""
    cores = allocatable.get(CPU, 0) / 1000
    return f"{gpus}{cores:g}c-{round(allocatable.get(MEMORY, 0) / GIB)}g"


def assumed_prices(source: str) -> str:
    """The warning that says where prices and speeds come from."""
    return (
        f"{source}: no prices or speeds recorded: {PRICE_USD_PER_CORE_H:g} USD/h a core and"
        " stated prices and relative speeds by GPU model assumed"
    )


def make_cluster(source: str, nodes: list[Node]) -> Cluster:
    """A cluster named after its file.

    Raises:
        ClusterError: if there is no node, or two share a name.
    """
    try:
        return Cluster(name=PurePath(source).name.partition(".")[0] or source, nodes=tuple(nodes))
    except ClusterError as error:
        raise ClusterError(f"{source}: {error}") from None


def read_node_manifests(text: str, source: str) -> tuple[Cluster, tuple[str, ...]]:
    """Read a cluster and the warnings about it.

    Cordoned nodes (`unschedulable: true`) are left out; other kinds of object are passed over.
    Resources of which a node has none are left out too, except cpu and memory.

    Raises:
        FormatError: if the text is no JSON or YAML, has no node, or a field has a wrong value.
        ClusterError: if no node is schedulable, one has no cpu, or two share a name.
    """
    repairs = Repairs(source)
    nodes: list[Node] = []
    found = False
    for place, manifest in _manifests(text, source):
        if manifest.get("kind") != "Node":
            kind = _shown(manifest.get("kind"))
            repairs.note("object that is no Node: passed over", f"{place}, kind {kind}")
            continue
        found = True
        node = _node(manifest, source, place, repairs)
        if node is not None:
            nodes.append(node)
    if not found:
        raise FormatError(f"{source}: holds no Kubernetes object of kind Node")
    if not nodes:
        raise ClusterError(f"{source}: every node is cordoned (unschedulable); nothing can run")
    cluster = make_cluster(source, nodes)
    return cluster, (assumed_prices(source), *repairs.warnings())


def looks_like(head: str) -> bool:
    """Whether a text that begins like this holds Node manifests."""
    kinds = (match[1] for match in _KIND.finditer(head))
    # Further kinds are those of owners and of list items, or follow in later documents.
    return next((kind for kind in kinds if kind != "List"), "") in ("Node", "NodeList")


def _manifests(text: str, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the text with its place; lists are opened."""
    is_json = text.lstrip()[:1] in ("{", "[")
    documents = [parse_json(text, source)] if is_json else parse_yaml(text, source)
    for i, document in enumerate(documents):
        place = f"{source}: document {i + 1}" if len(documents) > 1 else source
        kind = document.get("kind") if isinstance(document, dict) else None
        if isinstance(document, list) or kind in ("List", "NodeList"):
            items = document if isinstance(document, list) else document.get("items")
            if not isinstance(items, list):
                raise FormatError(f"{place}: items is {_shown(items)}; it must be a list")
            for j, item in enumerate(items):
                manifest = _mapping(item, f"{place}, item {j + 1}", "the object")
                # The API server leaves the kind out of the items of a typed list.
                yield (
                    f"{place}, item {j + 1}",
                    {"kind": "Node", **manifest} if kind == "NodeList" else manifest,
                )
        else:
            yield place, _mapping(document, place, "the document")


def _node(manifest: dict[str, Any], source: str, place: str, repairs: Repairs) -> Node | None:
    metadata = _mapping(manifest.get("metadata"), place, "metadata")
    name = metadata.get("name")
    if not isinstance(name, str) or not name or not name.isprintable():
        raise FormatError(f"{place}: metadata.name is {_shown(name)}; a node needs a name")
    where = f"{source}: node '{name[:60]}'"
    spec = _mapping(manifest.get("spec"), where, "spec")
    cordoned = spec.get("unschedulable") or False
    if not isinstance(cordoned, bool):
        raise FormatError(f"{where}: spec.unschedulable is {_shown(cordoned)}; use true or false")
    if cordoned:
        repairs.note("node is cordoned (unschedulable): left out", f"node '{name}'")
        return None
    labels: dict[str, str] = {}
    for key, value in _mapping(metadata.get("labels"), where, "metadata.labels").items():
        if not isinstance(value, str):
            raise FormatError(f"{where}: label {key} is {_shown(value)}; it must be text in quotes")
        labels[_LABELS.get(key, key)] = value
    allocatable = _allocatable(manifest, where, repairs)
    try:
        return make_node(name, allocatable, labels, _taints(spec, where), repairs)
    except ClusterError as error:
        raise ClusterError(f"{source}: {error}") from None


def _allocatable(manifest: dict[str, Any], where: str, repairs: Repairs) -> dict[str, int]:
    status = _mapping(manifest.get("status"), where, "status")
    quantities = _mapping(status.get("allocatable"), where, "status.allocatable")
    if not quantities:
        quantities = _mapping(status.get("capacity"), where, "status.capacity")
        if not quantities:
            raise FormatError(f"{where}: has neither status.allocatable nor status.capacity")
        repairs.note("node without allocatable: its capacity taken", where)
    allocatable = {}
    for key, quantity in quantities.items():
        resource = _RESOURCES.get(key, key)
        if not isinstance(quantity, str | int | float):
            raise FormatError(f"{where}: allocatable {key} is {_shown(quantity)}, no quantity")
        try:
            amount = parse_amount(resource, quantity)
        except ValueError as error:
            raise FormatError(f"{where}: allocatable {key}: {error}") from None
        if amount or resource in (CPU, MEMORY):
            allocatable[resource] = amount
    return allocatable


def _taints(spec: dict[str, Any], where: str) -> tuple[Taint, ...]:
    entries = spec.get("taints") or []
    if not isinstance(entries, list):
        raise FormatError(f"{where}: spec.taints is {_shown(entries)}; it must be a list")
    taints = []
    for entry in entries:
        taint = _mapping(entry, where, "a taint")
        key, value, effect = taint.get("key"), taint.get("value") or "", taint.get("effect")
        if not isinstance(key, str) or not key or not isinstance(value, str):
            raise FormatError(f"{where}: taint {_shown(taint)} needs a key, and its value is text")
        if effect not in EFFECTS:
            raise FormatError(
                f"{where}: taint '{key}' has effect {_shown(effect)};"
                f" allowed are {', '.join(EFFECTS)}"
            )
        taints.append(Taint(key, value, effect))
    return tuple(taints)


def _mapping(value: Any, where: str, what: str) -> dict[str, Any]:
    """A mapping with text keys; null counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(map(_is_key, value)):
        raise FormatError(f"{where}: {what} is {_shown(value)}; it must map text keys to values")
    return value


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable()


def _shown(value: Any) -> str:
    """A value for a message, short even where YAML aliases make it exponentially large."""
    try:
        return reprlib.repr(value)
    except ValueError:
        return "a number too long to print"
