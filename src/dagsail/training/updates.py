"""Updates: gradients of several workers into new weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from dagsail.domain.errors import TrainingError
from dagsail.training.learner import Arrays


class Adam:
    """Adam (Kingma and Ba, 2015) over arrays by name; PyTorch's, with its state as arrays."""

    def __init__(self, weights: Arrays, learning_rate: float, max_gradient: float) -> None:
        """Begin with weights.

        Args:
            weights: by name; copied.
            learning_rate: step size.
            max_gradient: longer gradients are cut to this length; infinite: none is.
        """
        self._parameters = {
            name: torch.nn.Parameter(torch.from_numpy(np.array(array)))
            for name, array in weights.items()
        }
        self._max_gradient = max_gradient
        self._optimiser = torch.optim.Adam(self._parameters.values(), lr=learning_rate)

    @property
    def weights(self) -> Arrays:
        """As they are now, copied."""
        return {name: value.detach().numpy().copy() for name, value in self._parameters.items()}

    def update(self, gradients: Sequence[Arrays]) -> None:
        """One step along the mean of gradients.

        Raises:
            TrainingError: if it is not a number.
        """
        for name, parameter in self._parameters.items():
            mean = np.mean([part[name] for part in gradients], axis=0)
            if not np.isfinite(mean).all():
                raise TrainingError(
                    f"training: the gradient of '{name}' is not a number;"
                    " try a smaller learningRate"
                )
            parameter.grad = torch.from_numpy(np.asarray(mean, np.float32).reshape(parameter.shape))
        torch.nn.utils.clip_grad_norm_(self._parameters.values(), self._max_gradient)
        self._optimiser.step()

    def state(self) -> Arrays:
        """Moments and counts, for a checkpoint; empty before the first update."""
        found: Arrays = {}
        for name, parameter in self._parameters.items():
            for key, value in self._optimiser.state[parameter].items():
                found[f"{key}.{name}"] = value.numpy().copy()
        return found

    def restore(self, weights: Arrays, state: Arrays) -> None:
        """Go on with weights and moments."""
        for name, parameter in self._parameters.items():
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(weights[name]))
            moments = {
                key: torch.from_numpy(np.array(state[f"{key}.{name}"]))
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"{key}.{name}" in state
            }
            if moments:
                self._optimiser.state[parameter] = moments


def gradients_of(network: torch.nn.Module) -> Arrays:
    """Gradients by parameter; zeros where there is none."""
    return {
        name: np.zeros(tuple(value.shape), np.float32) if value.grad is None else value.grad.numpy()
        for name, value in network.named_parameters()
    }


def mean_of(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean of each number by name."""
    return {name: float(np.mean([part[name] for part in found])) for name in found[0]}


def schedule(start: float, end: float, progress: float) -> float:
    """Linear from `start` to `end` while progress goes from 0 to 1."""
    return start + (end - start) * progress
