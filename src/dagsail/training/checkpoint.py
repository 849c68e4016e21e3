"""Checkpoints: how far a training has come, as one file of arrays; no pickle.

The file is replaced whole, so that an interrupted write leaves the last one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import safetensors
import safetensors.numpy

from dagsail.domain.errors import FormatError
from dagsail.files import writing
from dagsail.policies.scoring import schema
from dagsail.training.learner import Arrays, Learner
from dagsail.training.settings import Training, plain

FILE: Final = "checkpoint.safetensors"

_STATE: Final = "state."


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a training has come.

    Attributes:
        stage, step: the stage that is next, and how many of its steps are done.
        best_score: the best of the stage's validations; `misses` those since then.
        curve: all validations so far.
    """

    stage: int = 0
    step: int = 0
    best_score: float = float("inf")
    misses: int = 0
    curve: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a training needs to go on."""

    progress: Progress
    learner: Learner
    best: Learner
    state: Arrays


def save(folder: Path, checkpoint: Checkpoint, training: Training) -> None:
    """Write the checkpoint of a training.

    Raises:
        OutputError: if it cannot be written.
    """
    progress = checkpoint.progress
    arrays = {
        **checkpoint.learner.to_arrays("learner"),
        **checkpoint.best.to_arrays("best"),
        **{_STATE + name: array for name, array in checkpoint.state.items()},
    }
    notes = {
        "schema": str(schema.VERSION),
        "settings": _digest(training, progress),
        "progress": json.dumps(
            {
                "stage": progress.stage,
                "step": progress.step,
                "best_score": progress.best_score,
                "misses": progress.misses,
                "curve": progress.curve,
            }
        ),
    }
    with writing(folder / FILE, "wb") as stream:
        stream.write(safetensors.numpy.save(arrays, notes))


def load(folder: Path, training: Training) -> Checkpoint:
    """Read the checkpoint of a training.

    Raises:
        FormatError: if there is none, or it is of other settings or another feature schema.
    """
    path = folder / FILE
    if not path.is_file():
        raise FormatError(f"{path}: no such file; there is nothing to resume, leave out --resume")
    try:
        with safetensors.safe_open(path, "numpy") as opened:
            notes = opened.metadata() or {}
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        found = json.loads(notes["progress"])
        progress = Progress(**{**found, "curve": tuple(found["curve"])})
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: is no checkpoint that can be read ({error})") from None
    if notes.get("schema") != str(schema.VERSION):
        raise FormatError(
            f"{path}: made for feature schema {notes.get('schema')}, this version of Dagsail has"
            f" {schema.VERSION}; begin anew in another folder"
        )
    if notes.get("settings") != _digest(training, progress):
        raise FormatError(
            f"{path}: made with other settings; resume with the same, or begin anew in another"
            " folder (steps and patience may change, and stages may be added)"
        )
    return Checkpoint(
        progress,
        Learner.from_arrays(arrays, "learner"),
        Learner.from_arrays(arrays, "best"),
        {k.removeprefix(_STATE): v for k, v in arrays.items() if k.startswith(_STATE)},
    )


def _digest(training: Training, progress: Progress) -> str:
    """Everything that what was computed so far depends on, as text."""
    spec = plain(training.spec)
    spec["stages"] = spec["stages"][: progress.stage + (progress.step > 0)]
    spec["validation"].pop("patience")
    spec["validation"].pop("rules")
    for stage in spec["stages"]:
        stage.pop("steps")
    return json.dumps(spec, sort_keys=True)
