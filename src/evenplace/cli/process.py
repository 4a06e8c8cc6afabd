"""What the command line chooses for its own process; the library leaves all of it alone.

Memory: glibc returns every large block at once, and a network on the CPU asks for the same blocks
again a moment later: a third of extraction's time goes to the kernel clearing pages.  Measured on
EfficientNet-Lite0, 224 px, one core: 1.5 times the photos a second.

Threads: GNU OpenMP spins for milliseconds before a thread sleeps.  That is quickest on cores of
one's own.  Beside a busy neighbour each wait lasts as long as the neighbour has the core, and a
photo takes many times as long.  `benchmarks/neighbours.py` prints what a command takes alone and
beside busy loops; GOMP_SPINCOUNT=300000 undoes it.

Turns: a thread that decodes or describes needs Python's lock between two photos, and waits 5 ms
for it while another thread answers.  `benchmarks/locate.py` prints what a folder costs over
describing alone, with turns of a millisecond.

Warnings: Pillow calls a picture of 90 million pixels an attack; a panorama of one's own is none.
"""

import ctypes
import os
import sys
import warnings

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_LARGE = 1 << 30
VARIABLE, SPINS = "GOMP_SPINCOUNT", 1000
TURN = 0.001  # seconds


def keep_freed_memory() -> None:
    """Tell glibc's malloc to keep blocks up to a gigabyte; does nothing where there is none."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # absent from musl
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _LARGE)


def spin_briefly() -> None:
    """Tell OpenMP, before torch loads it; whoever has set the variable knows better."""
    os.environ.setdefault(VARIABLE, str(SPINS))


def take_short_turns() -> None:
    """Let threads have Python's lock sooner than after 5 ms."""
    sys.setswitchinterval(TURN)


def trust_large_pictures() -> None:
    """Say nothing of a picture that Pillow finds large; of twice that it still opens none."""
    warnings.filterwarnings("ignore", message="Image size .* could be decompression bomb")
