"""One batch of training: which photos, each through which view, and what they are called.

B batch · T triplets · A anchors · k positives · R regions of a photo
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Step:
    """What one batch is made of, before any photo is opened.

    labels are as the loss counts them.  heads: which classifier each photo is for.  triplets:
    rows of this batch.  soft, shares: for SFRS, an anchor and its k positives, and how the
    teacher shares its belief among their regions.
    """

    rows: Ints  # (B,) photos
    views: Ints  # (B,) which crop
    labels: Ints  # (B,)
    heads: Ints  # (B,)
    triplets: Ints | None = None  # (T, 3) anchor, positive, negative
    soft: Ints | None = None  # (A, 1 + k)
    shares: Floats | None = None  # (A, k * R)

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: NDArray[np.bool_]) -> "Step":
        """This batch without the photos that turned out unreadable.  kept: (B,)."""
        if kept.all():
            return self
        new = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        step = replace(
            self,
            rows=self.rows[kept],
            views=self.views[kept],
            labels=self.labels[kept],
            heads=self.heads[kept],
        )
        if self.triplets is not None:
            whole = kept[self.triplets].all(axis=1)
            step = replace(step, triplets=new[self.triplets[whole]])
        if self.soft is not None and self.shares is not None:
            whole = kept[self.soft].all(axis=1)
            step = replace(step, soft=new[self.soft[whole]], shares=self.shares[whole])
        return step

    def part(self, rank: int, ranks: int) -> slice:
        """Which photos of the batch are this rank's: contiguous, in the order of the ranks."""
        return slice(len(self) * rank // ranks, len(self) * (rank + 1) // ranks)


def plain_step(rows: Ints, labels: Ints, views: Ints, head: int = 0) -> Step:
    """A batch in which every photo goes to one classifier, or to a loss on pairs."""
    return Step(rows, views, labels, np.full(len(rows), head, np.int64))
