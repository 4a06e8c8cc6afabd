"""Memory that strangers made the process take, given back to the system.

The command line tells glibc to keep freed blocks (`cli/memory.py`), which is right for the blocks
a network asks for again and again, and wrong for one picture of 200 MB.
"""

import ctypes
import sys
from functools import cache
from typing import Any


def give_back() -> None:
    """Hand freed pages to the system; does nothing where the allocator has no such call."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl
