"""Learner: what a training changes, as arrays by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dagsail.policies.neural.network import Network, Sizes
from dagsail.policies.scoring.weights import ByAim
from dagsail.training.settings import NetworkSettings

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Learner:
    """A scorer by aim, and a network that starts as that scorer.

    Attributes:
        weights: of the scorer, which also chooses what the network is offered.
        network: state of the network, by parameter.
    """

    weights: ByAim
    network: Arrays

    def to_arrays(self, prefix: str) -> Arrays:
        """For a checkpoint."""
        return {
            f"{prefix}.weights": self.weights,
            **{f"{prefix}.network.{name}": array for name, array in self.network.items()},
        }

    @staticmethod
    def from_arrays(arrays: Arrays, prefix: str) -> Learner:
        """From a checkpoint."""
        start = f"{prefix}.network."
        network = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
        return Learner(arrays[f"{prefix}.weights"], network)


def fresh(weights: ByAim, settings: NetworkSettings, seed: int) -> Learner:
    """A scorer, and a network that decides like it.

    Args:
        weights: of the scorer.
        settings: widths of the network.
        seed: of its random parts.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(weights, settings.sharpness, _sizes(settings))
    return Learner(np.array(weights), state_of(network))


def state_of(network: Network) -> Arrays:
    """Parameters by name, copied."""
    return {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}


def network_of(state: Arrays, settings: NetworkSettings) -> Network:
    """A network with these parameters."""
    rows, columns = state["by_aim"].shape
    network = Network(np.zeros((rows, columns)), 1.0, _sizes(settings))
    network.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return network


def _sizes(settings: NetworkSettings) -> Sizes:
    return Sizes(settings.hidden, settings.summary)
