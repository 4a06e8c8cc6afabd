"""RandAugment (Cubuk et al., 2020) on a whole batch: a few operations a photo, drawn at random.

Strengths are those of magnitude 9 of 31, which the trainers of this field leave as it is.

    B batch · H, W pixels
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

_SHARE = 9 / 30  # of the strongest each operation can be
Operation = Callable[[Tensor, Tensor], Tensor]  # (b, 3, H, W) in 0..1, (b,) signs -> the same


def rand_augment(photos: Tensor, generator: torch.Generator, count: int) -> Tensor:
    """Apply `count` operations to each photo, one after the other.  (B, 3, H, W) in 0..1."""
    for _ in range(count):
        which = torch.randint(len(_OPERATIONS), (len(photos),), generator=generator)
        signs = torch.randint(0, 2, (len(photos),), generator=generator) * 2.0 - 1
        out = photos.clone()
        for number in torch.unique(which).tolist():
            rows = torch.where(which == number)[0].to(photos.device)
            done = _OPERATIONS[number](photos[rows], signs[which == number].to(photos.device))
            out[rows] = done.clamp(0, 1)
        photos = out
    return photos


def _moved(photos: Tensor, theta: Tensor) -> Tensor:
    grid = F.affine_grid(theta.to(photos), list(photos.shape), align_corners=False)
    return F.grid_sample(photos, grid, mode="bilinear", align_corners=False)


def _affine(row: int, column: int, amount: float) -> Operation:
    """Shear (off the diagonal) or shift (last column) by a signed amount."""

    def move(photos: Tensor, signs: Tensor) -> Tensor:
        theta = torch.eye(2, 3, device=photos.device).repeat(len(photos), 1, 1)
        theta[:, row, column] += amount * signs
        return _moved(photos, theta)

    return move


def _rotate(photos: Tensor, signs: Tensor) -> Tensor:
    angle = torch.deg2rad(30 * _SHARE * signs)
    theta = torch.zeros(len(photos), 2, 3, device=photos.device)
    theta[:, 0, 0] = theta[:, 1, 1] = angle.cos()
    theta[:, 0, 1], theta[:, 1, 0] = -angle.sin(), angle.sin()
    return _moved(photos, theta)


def _away_from(base: Callable[[Tensor], Tensor]) -> Operation:
    """Move a photo away from a duller one, or towards it: factors 1 ± 0.27."""

    def blend(photos: Tensor, signs: Tensor) -> Tensor:
        dull = base(photos)
        return dull + (photos - dull) * (1 + 0.9 * _SHARE * signs).view(-1, 1, 1, 1)

    return blend


def _grey(photos: Tensor) -> Tensor:
    weights = torch.tensor([0.299, 0.587, 0.114], device=photos.device).view(3, 1, 1)
    return (photos * weights).sum(dim=1, keepdim=True)


def _smooth(photos: Tensor) -> Tensor:
    kernel = torch.ones(3, 3, device=photos.device)
    kernel[1, 1] = 5
    kernel = (kernel / kernel.sum()).expand(3, 1, 3, 3)
    return F.conv2d(F.pad(photos, (1, 1, 1, 1), mode="replicate"), kernel, groups=3)


def _posterise(photos: Tensor, _: Tensor) -> Tensor:
    levels = 2.0 ** round(8 - 4 * _SHARE)
    return (photos * 255 / (256 / levels)).floor() * (256 / levels) / 255


def _solarise(photos: Tensor, _: Tensor) -> Tensor:
    return torch.where(photos >= 1 - _SHARE, 1 - photos, photos)


def _stretch(photos: Tensor, _: Tensor) -> Tensor:
    low, high = photos.amin(dim=(2, 3), keepdim=True), photos.amax(dim=(2, 3), keepdim=True)
    return torch.where(high > low, (photos - low) / (high - low).clamp(min=1e-6), photos)


def _equalise(photos: Tensor, _: Tensor) -> Tensor:
    """Each channel's values replaced by their rank among the pixels, in 256 steps."""
    levels = (photos * 255).round().long().flatten(2)  # (B, 3, HW)
    counts = torch.zeros(*levels.shape[:2], 256, device=photos.device)
    counts.scatter_add_(2, levels, torch.ones_like(levels, dtype=counts.dtype))
    below = counts.cumsum(dim=2) - counts
    spread = below / (levels.shape[2] - counts.gather(2, levels.amax(2, keepdim=True))).clamp(min=1)
    return spread.gather(2, levels).view_as(photos)


_OPERATIONS: tuple[Operation, ...] = (
    lambda photos, _: photos,
    _affine(0, 1, 0.3 * _SHARE),
    _affine(1, 0, 0.3 * _SHARE),
    _affine(0, 2, 300 / 331 * _SHARE),  # torchvision shifts by up to 150 / 331 of the width
    _affine(1, 2, 300 / 331 * _SHARE),
    _rotate,
    _away_from(torch.zeros_like),
    _away_from(_grey),
    _away_from(lambda photos: _grey(photos).mean(dim=(2, 3), keepdim=True)),
    _away_from(_smooth),
    _posterise,
    _solarise,
    _stretch,
    _equalise,
)
