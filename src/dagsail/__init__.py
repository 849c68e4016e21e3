"""Dagsail: real workflow files in, measured comparisons of schedulers out.

The names below load on first use, so that `import dagsail` comes back at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dagsail.api import cluster, compare, metrics, plot, read, scenario, simulate

__all__ = ["cluster", "compare", "metrics", "plot", "read", "scenario", "simulate"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'dagsail' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module("dagsail.api"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
