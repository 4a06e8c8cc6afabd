"""How long a thread of torch's spins for its fellows before it sleeps.

GNU OpenMP spins for milliseconds by default.  That is quickest on cores of one's own.  Beside a
busy neighbour each wait lasts as long as the neighbour has the core, and a photo takes many times
as long, processor time included.  `benchmarks/neighbours.py` prints what a command takes alone and
beside busy loops; GOMP_SPINCOUNT=300000 undoes it.
"""

import os

VARIABLE, SPINS = "GOMP_SPINCOUNT", 1000


def spin_briefly() -> None:
    """Tell OpenMP, before torch loads it; whoever has set the variable knows better."""
    os.environ.setdefault(VARIABLE, str(SPINS))
