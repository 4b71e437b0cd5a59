"""What the C library does with freed memory."""

from __future__ import annotations

import ctypes
import sys
from functools import cache


@cache
def keep_freed_memory() -> bool:
    """Tell the C library of this process to reuse freed memory instead of returning it; whether it listened.

    Matrices of some hundred rows are just past the size that glibc maps anew for every temporary, and page faults then
    take half the time of a gradient. For processes of our own (workers, command line), not for a host's.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    threshold, trim = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of <malloc.h>
    return bool(mallopt(threshold, 1 << 27)) and bool(mallopt(trim, 1 << 28))
