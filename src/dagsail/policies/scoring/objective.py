"""Objective: what the operator weighs, as the shares of four aims that sum to 1.

It is an input of what decides, not something that is tuned for: the balance moves live.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.errors import InputError
from dagsail.scalars import nearest

AIMS: Final = ("completion", "deadline", "cost", "balance")
"""Mean completion time of workflows, the share of them late by priority, the money that attempts
cost, and the spread of load over the nodes."""
NUM_AIMS: Final = len(AIMS)

Objective = NDArray[np.float32]
"""Shares in the order of AIMS. float32 (NUM_AIMS,)"""


def objective_of(weights: Mapping[str, float]) -> Objective:
    """Shares from weights by name, which need not sum to 1; what is not named weighs nothing.

    Raises:
        InputError: if a name is unknown, a weight negative or not a number, or all are zero.
    """
    for name, weight in weights.items():
        if name not in AIMS:
            hint = nearest(name, AIMS) or f"allowed are {', '.join(AIMS)}"
            raise InputError(f"objective: no aim '{name}'; {hint}")
        if not 0.0 <= weight < np.inf:
            raise InputError(f"objective: {name} is {weight}; expected a number from 0 up")
    given = np.array([weights.get(name, 0.0) for name in AIMS])
    if given.max() <= 0.0:
        raise InputError(f"objective: all weights are 0; give one of {', '.join(AIMS)}")
    shares = given / given.max()
    return (shares / shares.sum()).astype(np.float32)


DEFAULT: Final = objective_of({"completion": 1.0})
"""What is weighed unless told otherwise."""
