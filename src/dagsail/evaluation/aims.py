"""Aims: the four things that an objective weighs, measured on a whole run, and their sum."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.snapshot import FINISHED
from dagsail.evaluation import occupation as occupations
from dagsail.evaluation.window import whole_run
from dagsail.policies.scoring.objective import AIMS

Floats = NDArray[np.float64]

AIM_METRICS: Final = ("jct_mean_s", "late_ratio", "cost_usd", "node_load_std")
"""The metrics that measure the aims, in their order."""

_DEADLINE: Final = AIMS.index("deadline")
_SMALL: Final = 1e-9
_TOLERANCE_S: Final = 1e-6


def aims(run: Run) -> Floats:
    """What a run achieved, the lower the better, in the order of `AIMS`. float64 (NUM_AIMS,).

    Mean completion time in seconds; late workflows over those with a deadline, weighted 4 3 2 1 by
    priority (0 without deadlines); cost in USD; spread of load over nodes, averaged over time.
    """
    flows, snapshot = run.snapshot.workflows, run.snapshot
    held = occupations.occupation(run)
    changes = occupations.steps(held, len(snapshot.nodes), whole_run(run))
    return np.array(
        [
            float((flows["finish_s"] - flows["arrival_s"]).mean()),
            late_ratio(flows),
            occupations.costs(held, snapshot).total_usd,
            occupations.node_load_std(changes, snapshot),
        ]
    )


def late_ratio(flows: Any) -> float:
    """Late workflows over those with a deadline, weighted 4 3 2 1 by priority; 0 without any."""
    weight = (4.0 - flows["priority"]) * np.isfinite(flows["deadline_s"])
    late = (flows["finish_s"] > flows["deadline_s"] + _TOLERANCE_S) | (flows["state"] != FINISHED)
    return float((weight * late).sum() / max(weight.sum(), 1.0))


def composite(found: Floats, reference: Floats, objective: NDArray[np.float32]) -> float:
    """Weighted sum of the aims over those of a reference; that itself has 1 without lateness.

    The share of late workflows counts as it is: it may well be 0 for the reference.

    Args:
        found: aims of a run. (NUM_AIMS,)
        reference: aims of another run of the same world. (NUM_AIMS,)
        objective: shares. (NUM_AIMS,)
    """
    ratios = found / np.maximum(reference, _SMALL)
    ratios[_DEADLINE] = found[_DEADLINE] + 1.0
    return float(ratios @ objective)
