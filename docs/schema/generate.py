"""Writes the JSON Schemas of the native formats beside this file; a test keeps them current."""

from __future__ import annotations

import json
from pathlib import Path

from dagsail.clusters import catalog, scenario_file
from dagsail.documents import json_schema
from dagsail.training.settings import Training
from dagsail.workloads import native


def schemas() -> dict[str, str]:
    """The text of every schema file by its name."""
    by_name = {
        "workflow.json": native.schema(),
        "cluster.json": catalog.schema(),
        "scenario.json": scenario_file.schema(),
        "training.json": json_schema(Training),
    }
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in by_name.items()}


if __name__ == "__main__":
    for name, text in schemas().items():
        (Path(__file__).parent / name).write_text(text, encoding="utf-8")
