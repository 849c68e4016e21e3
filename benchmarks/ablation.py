"""What each feature of `scorer` is worth: mean completion time without it, over that with it.

One weight at a time is set to 0, on worlds such as training draws (none of validation, none that
was trained on): families, and workflows of wide stages. 1.02 means 2 % longer without the feature;
95 % intervals over worlds, which are played with the same luck.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from benchmarks._report import Report, parser
from dagsail.evaluation.statistics import compare_paired
from dagsail.policies.scoring import schema
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import preset
from dagsail.training.settings import WorldSettings
from dagsail.training.worlds import Worlds

FIRST_EPISODE: Final = 500_000_000
KINDS: Final = {
    "families": WorldSettings(wide_ratio=0.0),
    "wide stages": WorldSettings(wide_ratio=1.0),
}
PARTS: Final = {"task": schema.TASK, "pair": schema.PAIR, "wait": schema.WAIT}


def jct_s(settings: WorldSettings, weights: list[Any], count: int) -> np.ndarray:
    """Mean completion times. (weights, worlds)."""
    worlds = Worlds(settings)
    found = np.empty((len(weights), count))
    for world in range(count):
        prepared = worlds.simulation(FIRST_EPISODE + world)
        for index, given in enumerate(weights):
            flows = prepared.twin().run(scorer("scorer", given)).snapshot.workflows
            found[index, world] = (flows["finish_s"] - flows["arrival_s"]).mean()
    return found


def rows(count: int) -> list[dict[str, Any]]:
    names = [f"{part} {feature.name}" for part, listed in PARTS.items() for feature in listed]
    used = [index for index, weight in enumerate(preset()) if weight != 0.0]
    weights = [preset()]
    for index in used:
        weights.append(preset().copy())
        weights[-1][index] = 0.0
    tables: list[dict[str, Any]] = [
        {"without": names[index], "weight": float(preset()[index])} for index in used
    ]
    for kind, settings in KINDS.items():
        found = jct_s(settings, weights, count)
        for row, values in zip(tables, found[1:], strict=True):
            pair = compare_paired(values / found[0], np.ones(count), "lower")
            low, high = pair.ratio_ci95 or (math.nan, math.nan)
            row[kind] = f"{pair.ratio:.4f} [{low:.4f} .. {high:.4f}]"
            row[f"most, {kind}"] = float((values / found[0]).max())
    return tables


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--worlds", type=int, default=60)
    options = made.parse_args()
    report = Report(as_json=options.json)
    title = f"Completion time without one feature over that of the scorer, {options.worlds} worlds"
    report.table(title, rows(options.worlds))
    report.close()


if __name__ == "__main__":
    main()
