"""Training on triplets whose negatives are looked for, and SFRS's generations of them.

B batch · Q queries · T triplets · k positives · R regions of a photo · D descriptor
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenplace.arrays import Array, Doubles, Floats, Ints
from evenplace.errors import PhotoError
from evenplace.networks.checkpoints import read_tensors, save_tensors
from evenplace.photos.nearby import Nearby, find_nearby
from evenplace.training.batches import Step, split_batches
from evenplace.training.objective import Setup
from evenplace.training.pair_objective import PairObjective
from evenplace.training.specs import MiningSpec

Look = Callable[[Ints], Floats]


@dataclass(frozen=True)
class Mined:
    """Queries, the positives and negatives of each, best first; numbers of candidates."""

    queries: Ints  # (Q,)
    positives: Ints  # (Q, k), repeated where there are fewer
    negatives: Ints  # (Q, n)
    shares: Floats | None = None  # (Q, k * regions), SFRS's teacher

    def __len__(self) -> int:
        return len(self.queries)


def mine_triplets(
    queries: Ints,
    near: Nearby,
    positions: Doubles,
    look: Look,
    dice: np.random.Generator,
    spec: MiningSpec,
    city: NDArray[np.integer] | None = None,
) -> Mined:
    """Describe the photos and choose.

    Full mining describes all candidates; partial mining the queries, their positives and a pool
    of `spec.pool` others drawn at random, as deep-vg does on large sets.  near: the candidates
    within the positive radius of each.  positions: (N, 2) or (N, 3).  look: describes candidates.
    city: (N,) of each, where negatives are to be of the query's own.
    """
    close = [near.rows[near.starts[q] : near.starts[q + 1]] for q in queries]
    close = [own[own != q] for own, q in zip(close, queries, strict=True)]
    pool = np.arange(len(positions))
    if spec.pool and spec.pool < len(positions):
        pool = np.sort(dice.choice(len(positions), spec.pool, replace=False))
    wanted = np.unique(np.concatenate([queries, pool, *close]))
    seen = look(wanted)  # (n, D)
    at = np.searchsorted(wanted, np.arange(len(positions)))  # where each candidate is in `seen`
    positives, negatives, kept = [], [], []
    for query, own in zip(queries, close, strict=True):
        asked = seen[at[query]]
        best = own[np.argsort(-(seen[at[own]] @ asked), kind="stable")]
        away = np.linalg.norm(positions[pool] - positions[query], axis=1)
        far = pool[(away > spec.negative) & (True if city is None else city[pool] == city[query])]
        if not len(far):
            continue
        alike = seen[at[far]] @ asked
        count = min(spec.negatives, len(far))
        top = np.argpartition(-alike, count - 1)[:count]
        hardest = far[top[np.argsort(-alike[top], kind="stable")]]
        kept.append(query)
        positives.append(np.resize(best, spec.positives))
        negatives.append(np.resize(hardest, spec.negatives))
    return Mined(np.array(kept, np.int64), _table(positives), _table(negatives))


def _table(rows: list[Ints]) -> Ints:
    return np.stack(rows).astype(np.int64) if rows else np.empty((0, 1), np.int64)


class TripletObjective(PairObjective):
    """NetVLAD's training: a query, its best positive, and negatives that look like it.

    Descriptors age, so the choice is made anew every `refresh` queries, over all photos or over
    a random pool of them.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        spec, rows = setup.recipe.mining, setup.rows
        photos = setup.photos[rows]
        self.positives = find_nearby(photos, photos, spec.positive)
        self.queries = np.flatnonzero(self.positives.counts > 1)  # itself is always near
        if not len(self.queries):
            raise PhotoError(
                f"no photo has another within {spec.positive:g} m to learn from; "
                "raise mining.positive or use more photos"
            )
        self.candidates = rows
        asked = min(spec.queries, len(self.queries))
        self.rounds = -(-asked // spec.refresh)
        self.per_round = -(-asked // self.rounds)

    def plan(self, epoch: int, round_: int) -> list[Step]:
        arrays = self.setup.choose(epoch, round_, lambda: self._arrays(epoch, round_))
        return self._deal(Mined(**arrays), self.setup.dice(epoch + 10**6 * (round_ + 1)))

    def _arrays(self, epoch: int, round_: int) -> dict[str, Array]:
        mined = self._mine(epoch, round_)
        if not len(mined):
            raise PhotoError(
                f"no photo lies beyond {self.setup.recipe.mining.negative:g} m of another; "
                "lower mining.negative or use photos of a larger area"
            )
        return {name: value for name, value in vars(mined).items() if value is not None}

    def _mine(self, epoch: int, round_: int) -> Mined:
        spec, within = self.setup.recipe.mining, self.setup.recipe.training.within_city
        dice = self.setup.dice(epoch)
        order = np.resize(dice.permutation(self.queries), self.rounds * self.per_round)
        asked = order[round_ * self.per_round : (round_ + 1) * self.per_round]
        return mine_triplets(
            asked,
            self.positives,
            self.setup.photos.points[self.candidates],
            lambda which: self.setup.source.look(self.candidates[which]),
            np.random.default_rng((self.setup.recipe.training.seed, epoch, round_)),
            spec,
            self.setup.photos.city[self.candidates] if within else None,
        )

    def _deal(self, mined: Mined, dice: np.random.Generator) -> list[Step]:
        """Cut queries into batches; each brings its positive and its negatives along."""
        spec = self.setup.recipe.training
        if mined.shares is None:  # one positive is enough without a teacher
            mined = Mined(mined.queries, mined.positives[:, :1], mined.negatives)
        width = 1 + mined.positives.shape[1] + mined.negatives.shape[1]
        size = max(1, spec.batch // width)
        parts = split_batches(np.arange(len(mined)), size)
        return [self._step(mined, part, dice) for part in parts[: spec.steps or None]]

    def _step(self, mined: Mined, part: Ints, dice: np.random.Generator) -> Step:
        together = np.concatenate(
            [mined.queries[part, None], mined.positives[part], mined.negatives[part]], axis=1
        )  # (q, 1 + k + n) of the candidates
        rows = self.candidates[together.ravel()]
        at = np.arange(together.size).reshape(together.shape)
        first = 1 + mined.positives.shape[1]
        triplets = np.stack(
            [
                np.broadcast_to(one, at[:, first:].shape).ravel()
                for one in (at[:, :1], at[:, 1:2], at[:, first:])
            ],
            axis=1,
        )
        heads = np.zeros(len(rows), np.int64)
        views = self.setup.views(len(rows), dice)
        soft = None if mined.shares is None else at[:, :first]
        shares = None if mined.shares is None else mined.shares[part]
        return Step(rows, views, self.labels[rows], heads, triplets, soft, shares)

    def __call__(self, descriptors: Tensor, labels: Tensor, step: Step) -> Tensor:
        assert step.triplets is not None
        chosen = torch.from_numpy(step.triplets).to(descriptors.device).T
        loss: Tensor = self.loss(descriptors, labels, tuple(chosen))
        return loss


class GenerationObjective(TripletObjective):
    """SFRS: each generation starts afresh and learns from the one before what is alike.

        L = L_hard + soft_weight · CE( softmax_j(s(q, r_j) / t_g) of the teacher,
                                       softmax_j(s(q, r_j) / t_1) of the student )

    r_j are the k best positives and their halves and quarters, t the generations' temperatures.
    The first generation has no teacher.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.first = {n: t.detach().cpu().clone() for n, t in setup.network.state_dict().items()}
        self.length = max(1, setup.recipe.training.epochs // setup.recipe.mining.generations)
        self.generation, self.teacher = 0, copy.deepcopy(setup.network).eval()
        start = setup.run / "generation-0.safetensors"
        if start.exists():
            self.first = read_tensors(start).tensors
        elif setup.ranks.first:
            save_tensors(start, self.first)

    def begin(self, epoch: int) -> bool:
        super().begin(epoch)
        self.generation = min(epoch // self.length, self.setup.recipe.mining.generations - 1)
        self.regions = self.generation > 0
        if not self.regions:
            return False
        kept = self.setup.run / f"generation-{self.generation}.safetensors"
        begins = epoch == self.generation * self.length
        if begins and not kept.exists() and self.setup.ranks.first:
            save_tensors(kept, self.setup.network.state_dict())
        self.setup.ranks.wait()
        self.teacher.load_state_dict(read_tensors(kept).tensors)
        return begins

    def restart(self) -> None:
        """Back to where the first generation began."""
        self.setup.network.load_state_dict(self.first)

    def _mine(self, epoch: int, round_: int) -> Mined:
        mined = super()._mine(epoch, round_)
        if not self.regions:
            return mined
        spec = self.setup.recipe.mining
        shares = self._shares(mined, spec.temperatures[self.generation % len(spec.temperatures)])
        return Mined(mined.queries, mined.positives, mined.negatives, shares)

    def _shares(self, mined: Mined, temperature: float) -> Floats:
        """How the teacher shares its belief among the positives' regions.  -> (Q, k * R)."""
        source, own = self.setup.source, self.setup.source.network
        source.network = self.teacher
        try:
            queries = source.look(self.candidates[mined.queries])  # (Q, D)
            seen = source.look(self.candidates[mined.positives.ravel()], regions=True)
        finally:
            source.network = own
        regions = seen.reshape(len(queries), -1, seen.shape[-1])  # (Q, k * R, D)
        alike = np.einsum("qd,qrd->qr", queries, regions) / temperature
        return F.softmax(torch.from_numpy(alike), dim=1).numpy()

    def __call__(self, descriptors: Tensor, labels: Tensor, step: Step) -> Tensor:
        if not self.regions:
            return super().__call__(descriptors, labels, step)
        hard = super().__call__(descriptors[:, 0], labels, step)
        assert step.soft is not None
        assert step.shares is not None
        spec, at = self.setup.recipe.mining, torch.from_numpy(step.soft).to(descriptors.device)
        regions = descriptors[at[:, 1:]].flatten(1, 2)  # (q, k * R, D)
        alike = torch.einsum("qd,qrd->qr", descriptors[at[:, 0], 0], regions)
        belief = F.log_softmax(alike / spec.temperatures[0], dim=1)
        taught = torch.from_numpy(step.shares).to(belief)
        return hard - spec.soft_weight * (taught * belief).sum(dim=1).mean()
