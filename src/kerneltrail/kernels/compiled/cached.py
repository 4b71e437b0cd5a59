"""The decorator of compiled functions: what was compiled is kept on disk, where there is a place for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba


def compiled(**options: Any) -> Any:
    """Compile a function when it is first called, with options of `numba.njit`.

    Machine code is kept beside the sources or in the user's cache folder. Where neither can be written, as in a
    read-only installation of a service without a home, it is compiled in every process, and a warning says so once.
    With ``inline="always"`` a function that only one other calls is compiled as a part of that, once and not twice.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, no_cfunc_wrapper=True, **options)(function)
        except RuntimeError:  # numba finds no folder
            _warn()
            return numba.njit(**options)(function)

    return decorate


@cache
def _warn() -> None:
    warnings.warn(
        "compiled code cannot be kept, since neither the installation nor the user's cache folder can be written: each "
        "process will compile anew, for about a minute. Set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=1,
    )
