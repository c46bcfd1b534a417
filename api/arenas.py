"""How many arenas the C allocator keeps: few, so that memory does not creep up with short-lived threads."""

import ctypes
import os
from collections.abc import Mapping

# LangGraph runs each turn in threads of its own. glibc gives new threads arenas in turn, up to eight a core,
# and what a turn leaves behind is then cut up over all of them.
MOST_ARENAS = 2
_M_ARENA_MAX = -8  # of glibc's malloc.h


def keep_few_arenas(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the allocator was told. Not where MALLOC_ARENA_MAX says so already, or without glibc."""
    if "MALLOC_ARENA_MAX" in environment:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_ARENA_MAX, MOST_ARENAS))
