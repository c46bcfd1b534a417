"""The C allocator is told to keep few arenas, unless the environment says how many."""

import platform
import subprocess
import sys

import pytest

from api.arenas import MOST_ARENAS, keep_few_arenas

# What malloc_info tells of the process after many threads have each taken memory at the same time.
COUNTS_ARENAS = """
import ctypes, sys, threading
from api.arenas import keep_few_arenas
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
if sys.argv[1] == "few":
    assert keep_few_arenas({})
ready = threading.Barrier(17)
def take():
    libc.malloc(1000)
    ready.wait()
for _ in range(16):
    threading.Thread(target=take).start()
ready.wait()
libc.fopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""


def arenas(how: str) -> int:
    found = subprocess.run(
        [sys.executable, "-c", COUNTS_ARENAS, how], capture_output=True, text=True, check=True, timeout=300
    )
    return found.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas to count")
def test_threads_share_few_arenas() -> None:
    assert arenas("few") <= MOST_ARENAS < arenas("as many as it likes")


def test_what_the_environment_says_stays() -> None:
    assert not keep_few_arenas({"MALLOC_ARENA_MAX": "8"})
