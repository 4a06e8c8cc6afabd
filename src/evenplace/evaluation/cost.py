"""What answering costs: memory, and milliseconds by stage, measured one query at a time."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evenplace.arrays import Doubles
from evenplace.errors import PhotoError
from evenplace.retrieval import Search

TIMED = 40  # queries; medians of a stage settle to a few percent


@dataclass(frozen=True)
class Latency:
    """Milliseconds a query spends in one stage."""

    median_ms: float
    p95_ms: float


@dataclass(frozen=True)
class Cost:
    """What answering takes, and what stayed out of reach."""

    answerable: int  # queries with a match in the database
    skipped: int  # queries that could not be read
    unreachable: int  # database photos in no place of the classifier
    pool_size: float  # mean candidates a query
    index_bytes: int
    parameters: int  # of the network; 0 where descriptors came from elsewhere
    dim: int  # numbers a photo
    resident_bytes: int  # memory of the process that answered, 0 if unknown
    latency: dict[str, Latency]

    @property
    def median_ms(self) -> float:
        """One query, start to end: the sum of the stages' medians."""
        return sum(stage.median_ms for stage in self.latency.values())


def time_stages(engine: Search, paths: Sequence[str], count: int = TIMED) -> dict[str, Latency]:
    """Ask some of the photos one by one, spread over all of them, and time each stage.

    The first answer, which fills caches, is left out when there are others.
    """
    if engine.describer is None or not paths or count < 1:
        return {}
    step = max(1, len(paths) // count)
    spent = []
    for path in paths[::step][: count + 1]:
        with suppress(PhotoError):
            spent.append(engine.answer(path, 5).elapsed_ms)
    return latencies(
        {stage: np.array([one[stage] for one in spent]) for stage in spent[0]} if spent else {}
    )


def latencies(elapsed_ms: dict[str, Doubles]) -> dict[str, Latency]:
    """Median and 95th percentile of each stage; the first query is left out if it can be."""
    found = {}
    for stage, spent in elapsed_ms.items():
        settled = spent[1:] if len(spent) > 1 else spent
        if len(settled):
            median, p95 = np.percentile(settled, [50, 95])
            found[stage] = Latency(float(median), float(p95))
    return found


def measure_cost(
    engine: Search, *, answerable: int, skipped: int, pool_size: float, latency: dict[str, Latency]
) -> Cost:
    """Complete what an evaluation counted by what the engine and the process take."""
    return Cost(
        answerable=answerable,
        skipped=skipped,
        unreachable=int((engine.index.labels < 0).sum()),
        pool_size=pool_size,
        index_bytes=engine.index_bytes,
        parameters=engine.describer.parameters if engine.describer else 0,
        dim=engine.ranking.dim,
        resident_bytes=_resident_bytes(),
        latency=latency,
    )


def _resident_bytes() -> int:
    """Memory of this process now; 0 where the system does not say (no /proc)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def mean_cost(costs: Sequence[Cost]) -> Cost:
    """Several runs of one system: counts added, sizes the largest, times averaged."""
    stages = [stage for stage in costs[0].latency if all(stage in cost.latency for cost in costs)]
    latency = {
        stage: Latency(
            float(np.mean([cost.latency[stage].median_ms for cost in costs])),
            float(np.mean([cost.latency[stage].p95_ms for cost in costs])),
        )
        for stage in stages
    }
    return Cost(
        answerable=sum(cost.answerable for cost in costs),
        skipped=sum(cost.skipped for cost in costs),
        unreachable=sum(cost.unreachable for cost in costs),
        pool_size=float(np.mean([cost.pool_size for cost in costs])),
        index_bytes=max(cost.index_bytes for cost in costs),
        parameters=max(cost.parameters for cost in costs),
        dim=costs[0].dim,
        resident_bytes=max(cost.resident_bytes for cost in costs),
        latency=latency,
    )
