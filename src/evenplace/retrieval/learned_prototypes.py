"""Prototypes of places, learned from descriptors that stay as they are: anybody's, or a network's.

The mean of a place's photos is where they start.  Each photo then asks which place it is of, and
its own place answers without it: a photo that is part of its own answer is always found, and
nothing is left to learn.

    own place    <z_i, (n m_c - z_i) / |n m_c - z_i|>      m_c: what is learned, first the mean
    any other    <z_i, m_c / |m_c|>

Photos are read a batch at a time, and wide descriptors are moved along their 512 principal axes
alone, so memory is what the means take and a tenth more.

N photos · C places, H of them with photos · D descriptor · d axes that are moved · B batch
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.arrays import Floats, evenly
from evenplace.errors import SettingError
from evenplace.losses.classification import CosineLoss, CrossEntropy, LowVisitBias
from evenplace.losses.sampled import SampledClassifier
from evenplace.losses.softmax import Columns
from evenplace.retrieval.array_files import Rows
from evenplace.retrieval.codec import AXES_SAMPLE, principal_axes
from evenplace.retrieval.prototypes import MEANS, PlaceMeans, fit_scale

LEARNED = ("softmax", "low-visit-bias")
_BETA, _KAPPA = 0.25, 0.5  # as in dapr-m
_EPOCHS, _BATCH, _STEPS = 5, 64, 2000  # so many passes, or so many batches where those are fewer
_RATE = 0.02  # how far a step moves a prototype of unit length, all numbers together
_RIVALS = 4096  # places that answer at a time
_AXES = 512


def find_prototypes(
    kind: str, descriptors: Any, starts: Rows, summed: PlaceMeans
) -> tuple[Floats, float]:
    """Prototypes of a kind, and the scale they were learned with, 0 for means.  (C, D) unit."""
    if kind not in (MEANS, *LEARNED):
        raise SettingError(
            f"prototypes={kind} is for held-out photos to settle; tune first: evenplace tune RUN"
        )
    if kind == MEANS:
        return summed.directions(), 0.0
    return learn_prototypes(kind, descriptors, starts, summed)


def learn_prototypes(
    name: str, descriptors: Any, starts: Rows, summed: PlaceMeans, seed: int = 0
) -> tuple[Floats, float]:
    """Prototypes under a loss, from the means of the places, and the scale they were learned with.

    descriptors: (N, D) unit, place by place.  Photos that are alone in their place do not ask; it
    is moved only away from others.  -> (C, D) unit, in the array that held the means.
    """
    means, sizes = summed.directions(), np.diff(starts)
    scale = fit_scale(descriptors, starts, means, seed)
    held, rows = np.flatnonzero(sizes), np.flatnonzero(np.repeat(sizes > 1, sizes))
    if not len(rows):
        return means, scale
    means *= (summed.lengths / np.maximum(sizes, 1))[:, None]
    axes = _axes(descriptors)
    blocks = np.split(held, range(_RIVALS, len(held), _RIVALS))
    first = [means[block] if axes is None else means[block] @ axes for block in blocks]
    known = _Left(_loss(name, sizes[held], scale), np.concatenate(first), sizes[held], seed)
    _train(known, descriptors, rows, np.repeat(np.arange(len(held)), sizes[held]), axes, seed)
    ends = np.split(known.prototypes.detach().numpy(), range(_RIVALS, len(held), _RIVALS))
    for block, before, after in zip(blocks, first, ends, strict=True):
        means[block] += after - before if axes is None else (after - before) @ axes.T
    means /= np.maximum(np.sqrt(np.vecdot(means, means)), 1e-12)[:, None]
    return means, scale


def _loss(name: str, sizes: Rows, scale: float) -> CosineLoss:
    if name == "softmax":
        return CrossEntropy(scale=scale)
    return LowVisitBias(torch.from_numpy(sizes), beta=_BETA, kappa=_KAPPA, scale=scale, margin=0.0)


def _axes(descriptors: Any) -> Floats | None:
    """The axes along which wide descriptors differ most; None where all numbers may move."""
    count, dim = descriptors.shape
    if dim <= _AXES or count < AXES_SAMPLE:
        return None
    some = np.asarray(descriptors[evenly(count, AXES_SAMPLE)], np.float32)
    return principal_axes(some, _AXES)


class _Left(SampledClassifier):
    """A classifier that starts at means and leaves a photo out of its own place's."""

    def __init__(self, loss: CosineLoss, first: Floats, sizes: Rows, seed: int) -> None:
        fraction = min(1.0, _RIVALS / len(first))
        super().__init__(
            loss, *first.shape, fraction=fraction, corrected=True, sparse=fraction < 1,
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        self.sizes = torch.from_numpy(sizes).float()
        with torch.no_grad():
            self.prototypes.copy_(torch.from_numpy(first))

    def compare(self, descriptors: Tensor, labels: Tensor, columns: Columns | None) -> Tensor:
        cosines = super().compare(descriptors, labels, columns)  # (B, S)
        own = F.embedding(labels, self.prototypes, sparse=self.sparse)
        others = self.sizes[labels, None] * own - descriptors
        without = (F.normalize(descriptors, dim=1) * F.normalize(others, dim=1)).sum(dim=1)
        at = labels if columns is None else columns.find(labels)[0]
        return cosines.scatter(1, at[:, None], without[:, None])


def _train(
    known: _Left, descriptors: Any, rows: Rows, labels: Rows, axes: Floats | None, seed: int
) -> None:
    """Ask with some photos at a time.  rows: those that ask, labels: (N,) of all with a place."""
    kind: Any = torch.optim.SparseAdam if known.sparse else torch.optim.Adam
    optimiser = kind(list(known.parameters()), lr=_RATE / known.prototypes.shape[1] ** 0.5)
    steps = min(_STEPS, _EPOCHS * -(-len(rows) // _BATCH))
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    dice = np.random.default_rng(seed)
    passes = [dice.permutation(rows) for _ in range(-(-steps * _BATCH // len(rows)))]
    for part in np.split(np.concatenate(passes), _BATCH * np.arange(1, steps))[:steps]:
        asked = np.asarray(descriptors[np.sort(part)], np.float32)
        asked = asked if axes is None else asked @ axes
        optimiser.zero_grad()
        loss = known(torch.from_numpy(asked), torch.from_numpy(labels[np.sort(part)]))
        loss.backward()
        optimiser.step()
        slower.step()
