"""Bundles: a trained policy as a folder of plain files, verified before anything is loaded.

```
bundle.yaml             what it is: schema, objective, sampling, how it was trained
policy.onnx             the network, for ONNX Runtime
weights.safetensors     its weights, to train on from
candidates.yaml         the scorer that chooses what the network is offered
card.md                 how it fared against the rules when it was made
SHA256SUMS              of all files above
```

Nothing in a bundle is executed: no pickle, no code.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from dagsail.documents import ApiVersion, Metadata, Strict, read_document
from dagsail.domain.errors import FormatError, OutputError
from dagsail.files import read_text, writing
from dagsail.policies.scoring import observation, schema
from dagsail.policies.scoring.objective import Objective, objective_of
from dagsail.policies.scoring.weights import ByAim, read_weights

MANIFEST: Final = "SHA256SUMS"
DESCRIPTION: Final = "bundle.yaml"
MODEL: Final = "policy.onnx"
WEIGHTS: Final = "weights.safetensors"
CANDIDATES: Final = "candidates.yaml"
CARD: Final = "card.md"
FILES: Final = (DESCRIPTION, MODEL, WEIGHTS, CANDIDATES, CARD)

_MAX_BYTES: Final = 256 * 1024**2
_LINE: Final = re.compile(r"^([0-9a-f]{64})  ([A-Za-z0-9._-]+)$")


class Sampling(Strict, frozen=True):
    """How an answer of the network becomes a decision."""

    temperature: Annotated[float, msgspec.Meta(ge=0.0, le=10.0)] = 0.3
    """Below 1 the likely becomes likelier; 0 always takes the likeliest."""
    top_k: Annotated[int, msgspec.Meta(ge=1)] = 3
    """Only so many of the likeliest actions are drawn from."""


class Spec(Strict, frozen=True, kw_only=True):
    """What the network was made for."""

    schema_version: int
    """Version of the feature schema."""
    max_tasks: int
    """Tasks that it is offered at once."""
    max_nodes: int
    """Nodes that it is offered for each of them."""
    objective: dict[str, float]
    """What it weighs unless told otherwise."""
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    """How it is drawn from unless told otherwise."""
    value_quantiles: list[float] = msgspec.field(default_factory=list)
    """Quantiles of the critic's value in validation, from the lowest to the highest."""
    training: dict[str, Any] = msgspec.field(default_factory=dict)
    """Settings, seeds and versions with which it was trained."""


class Description(Strict, frozen=True):
    """The file `bundle.yaml`."""

    api_version: ApiVersion
    kind: Literal["Bundle"]
    metadata: Metadata
    spec: Spec


@dataclass(frozen=True, slots=True)
class Bundle:
    """A verified bundle.

    Attributes:
        folder: where it lies, with symbolic links resolved.
        digest: SHA-256 of its manifest, which names it exactly.
        name: given by whoever made it.
        spec: what it was made for.
        model, network: the network in ONNX, and its weights in safetensors.
        card: how it fared.
        weights: of the scorer that chooses candidates.
        objective: unless told otherwise.
    """

    folder: Path
    digest: str
    name: str
    spec: Spec
    model: bytes
    network: bytes
    card: str
    weights: ByAim
    objective: Objective


def read_bundle(folder: Path) -> Bundle:
    """Read and verify a bundle.

    The bytes that are hashed are the bytes that are returned, so that a swap in between is noticed.

    Raises:
        FormatError: if a file is missing, changed, unknown or made for another schema; says which.
    """
    # 1. Where `current` points now; later swaps do not matter.
    folder = folder.resolve()
    sums = _manifest(folder)
    # 2. Every file as promised.
    contents = {name: _verified(folder / name, digest) for name, digest in sums.items()}
    # 3. What it is.
    source = str(folder / DESCRIPTION)
    texts = {name: _text(folder / name, contents[name]) for name in (DESCRIPTION, CANDIDATES, CARD)}
    description = read_document(texts[DESCRIPTION], source, Description)
    spec = description.spec
    _check_schema(spec, source)
    weights = read_weights(texts[CANDIDATES], str(folder / CANDIDATES))
    manifest = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    return Bundle(
        folder=folder,
        digest=hashlib.sha256(manifest.encode()).hexdigest(),
        name=description.metadata.name,
        spec=spec,
        model=contents[MODEL],
        network=contents[WEIGHTS],
        card=texts[CARD],
        weights=weights,
        objective=objective_of(spec.objective),
    )


def _manifest(folder: Path) -> dict[str, str]:
    """Digests by file of the manifest, which must name exactly the files of a bundle."""
    if not folder.is_dir():
        raise FormatError(f"{folder}: no such folder; name one made by 'dagsail train'")
    path = folder / MANIFEST
    if not path.is_file():
        raise FormatError(f"{folder}: is no bundle (no {MANIFEST}); 'dagsail train' makes one")
    sums: dict[str, str] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        found = _LINE.match(line)
        if found is None or found[2] in sums:
            raise FormatError(f"{path}:{number}: expected one '<sha256>  <file>' for each file")
        sums[found[2]] = found[1]
    missing = [name for name in FILES if name not in sums]
    foreign = [name for name in sums if name not in FILES]
    if missing or foreign:
        what = f"does not list {missing[0]}" if missing else f"lists {foreign[0]}"
        raise FormatError(f"{path}: {what}; a bundle holds exactly {', '.join(FILES)}")
    return sums


def _verified(path: Path, digest: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) > _MAX_BYTES:
        raise FormatError(f"{path}: larger than {_MAX_BYTES // 1024**2} MiB")
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise FormatError(
            f"{path}: damaged or changed: its SHA-256 is {found[:12]}..., the manifest says"
            f" {digest[:12]}...; copy the bundle again"
        )
    return content


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _check_schema(spec: Spec, source: str) -> None:
    if spec.schema_version != schema.VERSION:
        raise FormatError(
            f"{source}: spec.schemaVersion: found {spec.schema_version}, but this version of"
            f" Dagsail computes features of schema {schema.VERSION}; train the bundle anew"
        )
    sizes = (spec.max_tasks, spec.max_nodes)
    allowed = (observation.MAX_TASKS, observation.MAX_NODES)
    if sizes != allowed:
        raise FormatError(
            f"{source}: made for {sizes[0]} tasks x {sizes[1]} nodes, but this version of Dagsail"
            f" offers {allowed[0]} x {allowed[1]}; train the bundle anew"
        )


def write_bundle(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files of a bundle into a new folder, the manifest last.

    Raises:
        OutputError: if the folder exists or cannot be written.
    """
    assert set(contents) == set(FILES)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None
    lines = []
    for name in FILES:
        with writing(folder / name, "wb") as stream:
            stream.write(contents[name])
        lines.append(f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n")
    with writing(folder / MANIFEST) as stream:
        stream.write("".join(lines))


def make_current(link: Path, folder: Path) -> Bundle:
    """Let the symbolic link point to a bundle, if it verifies; otherwise the old one stays.

    Readers see the old bundle or the new one, never neither.

    Raises:
        FormatError: if the bundle does not verify.
        OutputError: if the link cannot be made, or is something else.
    """
    bundle = read_bundle(folder)
    if link.exists() and not link.is_symlink():
        raise OutputError(f"{link}: exists and is no symbolic link; name another")
    temporary = link.with_name(f".{link.name}.{os.getpid()}")
    try:
        os.symlink(os.path.relpath(bundle.folder, link.parent.resolve()), temporary)
        os.replace(temporary, link)
    except OSError as error:
        raise OutputError(f"{link}: cannot be set ({error.strerror})") from None
    finally:
        temporary.unlink(missing_ok=True)
    return bundle
