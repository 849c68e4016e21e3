"""Release: the bundle of a training with its evaluation card, and the link to the current one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from dagsail.policies.neural.bundle import Bundle, Spec, make_current, read_bundle, write_bundle
from dagsail.policies.scoring import observation, schema
from dagsail.training.export import bundle_files
from dagsail.training.run import Trained
from dagsail.training.settings import Training, plain

BUNDLES: Final = "bundles"
CURRENT: Final = "current"

_PACKAGES: Final = ("dagsail", "numpy", "torch", "onnx", "cma")


def release(training: Training, trained: Trained, folder: Path) -> Bundle:
    """Write the bundle of a training and let `current` point to it.

    Args:
        training: settings.
        trained: what came of it.
        folder: of the training; the bundle goes to `bundles` in it, under its name and digest.

    Raises:
        OutputError: if it cannot be written.
    """
    name = training.metadata.name
    spec = Spec(
        schema_version=schema.VERSION,
        max_tasks=observation.MAX_TASKS,
        max_nodes=observation.MAX_NODES,
        objective=training.spec.objective.default,
        sampling=training.spec.sampling,
        value_quantiles=[float(value) for value in trained.value_quantiles],
        training={
            "settings": plain(training.spec),
            "versions": {package: _version(package) for package in _PACKAGES},
        },
    )
    files = bundle_files(
        trained.learner, training.spec.network, name, spec, card(training, trained)
    )
    bundles = folder / BUNDLES
    bundles.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bundles, prefix=".") as scratch:
        made = Path(scratch) / name
        write_bundle(made, files)
        place = bundles / f"{name}-{read_bundle(made).digest[:12]}"
        if not place.exists():  # the same training again gives the same bundle
            made.rename(place)
    return make_current(folder / CURRENT, place)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def card(training: Training, trained: Trained) -> str:
    """The evaluation card: how it fared in validation, and how training went."""
    objective = ", ".join(f"{k} {v:g}" for k, v in training.spec.objective.default.items())
    lines = [
        f"# {training.metadata.name}",
        "",
        f"Default objective: {objective}. Feature schema {schema.VERSION}.",
        "",
        f"## Validation: {training.spec.validation.worlds} random worlds, never trained on",
        "",
        "Composite of the objective less that of the preset scorer, in percent: below 0 is better.",
        "Half of the worlds weigh the default objective, half of them one drawn at random.",
        "",
        *_markdown(trained.table),
        "",
        "## Training",
        "",
        "| stage | algorithm | step | score | default objective | drawn objectives |",
        "|---|---|---|---|---|---|",
    ]
    for entry in trained.curve:
        numbers = " | ".join(
            f"{100 * entry[key]:+.2f}" for key in ("score", "score_default", "score_drawn")
        )
        lines.append(
            f"| {entry['stage'] + 1} | {entry['algorithm']} | {entry['step']} | {numbers} |"
        )
    return "\n".join(lines) + "\n"


def _markdown(table: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        f"| {name} | "
        + " | ".join(
            f"{100 * row.get(key, np.nan):+.2f}"
            for key in ("score", "score_default", "worst_default", "score_drawn")
        )
        + " |"
        for name, row in table.items()
    ]
    head = "| policy | all | default objective | its worst world | drawn objectives |"
    return [head, "|---|---|---|---|---|", *rows]
