"""The node's GPU is of an accepted model and its driver supports the task's CUDA version."""

from __future__ import annotations

from dagsail.domain.cluster import Node
from dagsail.domain.placement import Placement


def check(placement: Placement, node: Node) -> str | None:
    """None if model and driver will do. A driver runs every CUDA version up to its own."""
    if placement.gpu_models and node.gpu_model not in placement.gpu_models:
        wanted = ", ".join(placement.gpu_models)
        return f"GPU model is {node.gpu_model or 'none'}, the task wants one of {wanted}"
    if placement.min_cuda is not None:
        if node.max_cuda is None:
            return "has no CUDA driver"
        if node.max_cuda < placement.min_cuda:
            supported, needed = node.max_cuda, placement.min_cuda
            return (
                f"driver supports CUDA {supported[0]}.{supported[1]},"
                f" the task needs {needed[0]}.{needed[1]}"
            )
    return None
