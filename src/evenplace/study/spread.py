"""How a number varies from seed to seed."""

from collections.abc import Sequence

import numpy as np


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Mean ± standard deviation over the seeds; the mean alone for one."""
    known = np.array([value for value in values if np.isfinite(value)])
    if not len(known):
        return "–"
    if len(known) == 1:
        return f"{known[0]:.{digits}f}"
    return f"{known.mean():.{digits}f} ± {known.std(ddof=1):.{digits}f}"
