"""Model: the network of a bundle in ONNX Runtime, on one thread; needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dagsail.domain.errors import FormatError
from dagsail.policies.neural.bundle import MODEL, Bundle
from dagsail.policies.scoring.objective import DEFAULT
from dagsail.policies.scoring.observation import NUM_ACTIONS, arrays_of, make_observation

INPUTS: Final = ("cluster", "tasks", "pairs", "nodes", "waits", "legal", "pools", "objective")
"""What the network is asked, in this order; shapes as in `scoring.observation`."""
OUTPUTS: Final = ("logs", "value")
"""Log-probabilities of the actions, -inf where illegal, and the critic's value."""


class Model:
    """Answers observations."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the network.

        Raises:
            FormatError: if it is no ONNX model with the inputs and outputs of a policy.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        place = bundle.folder / MODEL
        try:
            self._session = onnxruntime.InferenceSession(
                bundle.model, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime has no common class of errors
            reason = str(error).splitlines()[0][:200]
            raise FormatError(f"{place}: is no ONNX model that can be run ({reason})") from None
        inputs = tuple(sorted(given.name for given in self._session.get_inputs()))
        outputs = tuple(made.name for made in self._session.get_outputs())
        if inputs != tuple(sorted(INPUTS)) or outputs != OUTPUTS:
            raise FormatError(
                f"{place}: takes {', '.join(inputs)} and gives {', '.join(outputs)}; a policy takes"
                f" {', '.join(sorted(INPUTS))} and gives {', '.join(OUTPUTS)}"
            )

        self._try(place)

    def _try(self, place: Path) -> None:
        """Refuse a network that cannot answer a question, or not in numbers."""
        question = {**arrays_of(make_observation(1)), "objective": DEFAULT[None]}
        question["legal"] = np.ones_like(question["legal"])
        try:
            logs, values = self(question)
        except Exception as error:  # as above
            reason = str(error).splitlines()[0][:200]
            raise FormatError(
                f"{place}: does not take this version's questions ({reason})"
            ) from None
        if logs.shape != (1, NUM_ACTIONS) or values.shape != (1,):
            raise FormatError(f"{place}: gives answers of shape {logs.shape} and {values.shape}")
        if not (np.isfinite(logs).all() and np.isfinite(values).all()):
            raise FormatError(f"{place}: answers with numbers that are not finite")

    def __call__(
        self, asked: Mapping[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Log-probabilities (B, actions) and values (B,) for `INPUTS` by name."""
        logs, values = self._session.run(None, dict(asked))
        return logs, values
