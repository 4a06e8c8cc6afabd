"""Other views of the same photo, made on whole batches where the batch lives.

B batch · H, W pixels
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.training.randaugment import rand_augment

_TO_YIQ = torch.tensor(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]]
)  # hue is the angle of the last two


@dataclass(frozen=True)
class Augmentation:
    """How far a view may stray: least share of the area, colours, hue, RandAugment's operations."""

    crop: float = 0.5
    jitter: float = 0.4
    hue: float = 0.0
    flip: bool = False
    randaugment: int = 0

    def name(self) -> str:
        """Short words that differ whenever views do."""
        usual = Augmentation(flip=self.flip)
        kind = "flip" if self.flip else "crop"
        if self == usual:
            return kind
        return f"{kind}{self.crop:g}j{self.jitter:g}h{self.hue:g}r{self.randaugment}"


def random_views(
    photos: Tensor,
    generator: torch.Generator,
    *,
    least_scale: float = 0.5,
    jitter: float = 0.4,
    flip: bool = False,
    hue: float = 0.0,
    randaugment: int = 0,
) -> Tensor:
    """Crop, light and colour each photo at random, as another camera on another day would.

    photos: (B, 3, H, W) uint8 -> the same shape, float in 0..1.
    """
    seen = photos.float().div_(255)
    if least_scale < 1 or flip:
        seen = _crop(seen, generator, least_scale, flip)
    if jitter:
        seen = _recolour(seen, generator, jitter)
    if hue:
        seen = _turn_hue(seen, generator, hue)
    if randaugment:
        seen = rand_augment(seen, generator, randaugment)
    return seen


def augmented(photos: Tensor, generator: torch.Generator, how: Augmentation) -> Tensor:
    """`random_views` with its settings."""
    return random_views(
        photos,
        generator,
        least_scale=how.crop,
        jitter=how.jitter,
        flip=how.flip,
        hue=how.hue,
        randaugment=how.randaugment,
    )


def _crop(photos: Tensor, generator: torch.Generator, least_scale: float, flip: bool) -> Tensor:
    """Zoom into a window of at least `least_scale` of the area, aspect within 3:4 and 4:3."""
    count = len(photos)
    draw = torch.rand(count, 5, generator=generator)
    area = least_scale + (1 - least_scale) * draw[:, 0]  # (B,)
    aspect = torch.exp((draw[:, 1] * 2 - 1) * torch.tensor(4 / 3).log())
    width = (area * aspect).sqrt().clamp(max=1.0)
    height = (area / aspect).sqrt().clamp(max=1.0)
    theta = torch.zeros(count, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = width, height
    theta[:, 0, 2] = (draw[:, 2] * 2 - 1) * (1 - width)
    theta[:, 1, 2] = (draw[:, 3] * 2 - 1) * (1 - height)
    if flip:
        theta[:, 0, 0] *= torch.where(draw[:, 4] < 0.5, -1.0, 1.0)
    grid = F.affine_grid(theta.to(photos.device), list(photos.shape), align_corners=False)
    return F.grid_sample(photos, grid, mode="bilinear", align_corners=False)


def _recolour(photos: Tensor, generator: torch.Generator, jitter: float) -> Tensor:
    """Scale brightness, contrast and saturation by factors in 1 ± jitter."""
    draw = 1 + (torch.rand(len(photos), 3, 1, 1, 1, generator=generator) * 2 - 1) * jitter
    brightness, contrast, saturation = draw.to(photos.device).unbind(1)  # each (B, 1, 1, 1)
    photos = photos * brightness
    grey = photos.mean(dim=1, keepdim=True)
    photos = grey + (photos - grey) * saturation
    middle = photos.mean(dim=(1, 2, 3), keepdim=True)
    return (middle + (photos - middle) * contrast).clamp_(0, 1)


def _turn_hue(photos: Tensor, generator: torch.Generator, hue: float) -> Tensor:
    """Turn the colours by up to `hue` of the circle; grey stays grey."""
    angle = (torch.rand(len(photos), generator=generator) * 2 - 1) * hue * 2 * torch.pi
    turn = torch.zeros(len(photos), 3, 3)
    turn[:, 0, 0] = 1
    turn[:, 1, 1] = turn[:, 2, 2] = angle.cos()
    turn[:, 1, 2], turn[:, 2, 1] = -angle.sin(), angle.sin()
    matrix = torch.linalg.inv(_TO_YIQ) @ turn @ _TO_YIQ  # (B, 3, 3)
    return torch.einsum("bij,bjhw->bihw", matrix.to(photos.device), photos).clamp_(0, 1)
