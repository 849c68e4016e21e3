"""Compiled kernels: one typed decorator, and a cache that can never be stale.

Numba caches a compiled function by the time stamp of its own file, so a change in a callee of
another file would go unnoticed. The cache therefore lies in a folder named by the hash of all of
Dagsail's sources: any change compiles anew, and nothing else does.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PACKAGE: Final = Path(__file__).parent
_KEPT_CACHES: Final = 5


def _bounds_check() -> bool | None:
    return True if os.environ.get("DAGSAIL_BOUNDS_CHECK") else None


def _source_hash() -> str:
    """Hash of every source that another compiled file may have built in.

    Heuristics are left out: nothing builds on them, and Numba itself notices their changes.
    """
    digest = hashlib.sha256(f"{numba.__version__} {_bounds_check()}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.parent.name == "heuristics":
            continue
        text = path.read_text(encoding="utf-8")
        if "dagsail.kernels" in text or "dagsail.structs" in text:
            digest.update(text.encode())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    root = os.environ.get("DAGSAIL_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dagsail"
    )
    folder = Path(root) / f"kernels-{_source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        siblings = sorted(folder.parent.glob("kernels-*"), key=lambda p: p.stat().st_mtime)
        for old in [p for p in siblings if p != folder][: -(_KEPT_CACHES - 1)]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="dagsail-kernels-"))
    return folder


def _import_without_scipy() -> None:
    """Import Numba's array functions while SciPy seems absent.

    They would import SciPy's linear algebra, a quarter of a start-up, for `np.inner` alone.
    """
    module = "scipy.linalg.cython_blas"
    if module in sys.modules:
        return
    sys.modules[module] = cast(Any, None)
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules[module]


CACHE_FOLDER: Final = _cache_folder()
numba.config.CACHE_DIR = str(CACHE_FOLDER)
_import_without_scipy()


def kernel(function: _Function) -> _Function:
    """Compile a function over numpy arrays on first use; later runs load it from the cache.

    Other kernels call it; Python calls an `entry`.
    """
    compiled = numba.njit(
        cache=True,
        error_model="numpy",
        boundscheck=_bounds_check(),
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return cast(_Function, compiled)


def entry(function: _Function) -> _Function:
    """A kernel that Python calls."""
    compiled = numba.njit(
        cache=True, error_model="numpy", boundscheck=_bounds_check(), no_cfunc_wrapper=True
    )(function)
    return cast(_Function, compiled)


def inlined(function: _Function) -> _Function:
    """Like `kernel`, for a few lines on the hottest path: always inlined by the code generator."""
    compiled = numba.njit(
        cache=True,
        error_model="numpy",
        boundscheck=_bounds_check(),
        forceinline=True,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return cast(_Function, compiled)
