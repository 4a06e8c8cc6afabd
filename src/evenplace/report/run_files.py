"""What a run folder keeps that a page can show: its index and its log.  Never the model."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenplace.places.coverage import Diversity, measure_diversity
from evenplace.retrieval import Index, open_index


@dataclass(frozen=True)
class Kept:
    """An index, if there is one, and the lines of log.jsonl."""

    name: str
    index: Index | None
    log: tuple[dict[str, Any], ...]

    def diversity(self) -> Diversity | None:
        """How alike the photos of each place look; None without an index."""
        if self.index is None:
            return None
        places = replace(self.index.places, labels=self.index.labels)
        return measure_diversity(self.index.descriptors, places)


def read_kept(run: Path) -> Kept:
    """Look into a run folder; what is not there is not shown."""
    index = open_index(run / "index") if (run / "index" / "manifest.json").exists() else None
    lines = []
    if (run / "log.jsonl").exists():
        for line in (run / "log.jsonl").read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:  # half a line, written when the run was stopped
                continue
    return Kept(run.name, index, tuple(lines))
