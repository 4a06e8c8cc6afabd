"""One batch of training, and which photos an epoch sees: how often a place is met.

B batch · N photos · C places · P places a batch · K photos of each
T triplets · A anchors · k positives · R regions of a photo
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenplace.arrays import Bools, Floats, Ints, renumber


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

    def only(self, kept: Bools) -> "Step":
        """This batch without the photos that turned out unreadable.  kept: (B,)."""
        if kept.all():
            return self
        new = renumber(kept)
        every = ("rows", "views", "labels", "heads")
        step = replace(self, **{name: getattr(self, name)[kept] for name in every})
        if self.triplets is not None:
            whole = kept[self.triplets].all(axis=1)
            step = replace(step, triplets=new[self.triplets[whole]])
        if self.soft is not None and self.shares is not None:
            whole = kept[self.soft].all(axis=1)
            step = replace(step, soft=new[self.soft[whole]], shares=self.shares[whole])
        return step


def plain_step(rows: Ints, labels: Ints, views: Ints, head: int = 0) -> Step:
    """A batch in which every photo goes to one classifier, or to a loss on pairs."""
    return Step(rows, views, labels, np.full(len(rows), head, np.int64))


def epoch_rows(
    labels: Ints, sampler: str, generator: np.random.Generator, size: int | None = None
) -> Ints:
    """Draw as many photos as there are, or `size`, in random order.

    photo: each photo once, so a place is met as often as it was photographed.
    place: each place equally often, as CosPlace and D&C do.
    sqrt:  each place in proportion to the root of its photo count.
    labels: (N,) place of each photo; every label counts -> rows (N,).
    """
    size = len(labels) if size is None else size
    if sampler == "photo":
        rounds = max(1, -(-size // max(1, len(labels))))
        return np.concatenate([generator.permutation(len(labels)) for _ in range(rounds)])[:size]
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    share = counts**0.5 if sampler == "sqrt" else np.ones(len(counts))
    odds = (share / counts)[which]  # (N,) a place's share spread over its photos
    return generator.choice(len(labels), size=size, p=odds / odds.sum())


def epoch_bunches(
    labels: Ints, sampler: str, generator: np.random.Generator, bunch: int, size: int | None = None
) -> list[Ints]:
    """Draw bunches of K photos of one place: P of them make a batch of a loss on pairs.

    photo: every photo once, so a place has a bunch for each K of its photos.
    place: one bunch a place, as GSV-Cities' trainers do.
    sqrt:  as many bunches, places drawn in proportion to the root of their count.
    A place with fewer than K photos repeats them, each time through another crop.  size: how
    many bunches; the draw goes on until there are enough.
    """
    order = np.argsort(labels, kind="stable")
    _, starts = np.unique(labels[order], return_index=True)
    members = np.split(order, starts[1:])
    found: list[Ints] = []
    while not found or (size is not None and len(found) < size):
        found += _bunches(members, sampler, generator, bunch)
    return found[:size]


def _bunches(
    members: list[Ints], sampler: str, generator: np.random.Generator, bunch: int
) -> list[Ints]:
    if sampler == "photo":
        found = []
        for own in members:
            mixed = generator.permutation(own)
            parts = np.split(mixed, range(bunch, len(mixed), bunch))
            found += [_fill(part, own, bunch, generator) for part in parts]
        return [found[at] for at in generator.permutation(len(found))]
    if sampler == "sqrt":
        root = np.sqrt([len(own) for own in members])
        drawn = generator.choice(len(members), size=len(members), p=root / root.sum())
    else:
        drawn = generator.permutation(len(members))
    return [_fill(members[at][:0], members[at], bunch, generator) for at in drawn]


def _fill(part: Ints, own: Ints, bunch: int, generator: np.random.Generator) -> Ints:
    """Complete a bunch with photos of its place, other ones first."""
    while len(part) < bunch:
        fresh = np.setdiff1d(own, part) if len(part) < len(own) else own
        part = np.append(part, generator.permutation(fresh)[: bunch - len(part)])
    return part


def city_batches(
    homes: NDArray[np.integer], size: int, generator: np.random.Generator
) -> list[Ints]:
    """Batches of bunches of one city each, in any order; one that is left alone is left out.

    homes: (n,) the city of each bunch.  -> numbers of bunches.
    """
    parts: list[Ints] = []
    for home in np.unique(homes):
        parts += split_batches(np.flatnonzero(homes == home), size)
    usable = [part for part in parts if len(part) > 1]
    return [usable[at] for at in generator.permutation(len(usable))]


def split_batches(rows: Ints, batch: int) -> list[Ints]:
    """Cut rows into batches of nearly equal size, none of them tiny."""
    return np.array_split(rows, max(1, round(len(rows) / batch)))
