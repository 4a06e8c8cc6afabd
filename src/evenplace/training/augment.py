"""Other views of the same photo, made on whole batches where the batch lives.

B batch · H, W pixels
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def random_views(
    photos: Tensor,
    generator: torch.Generator,
    *,
    least_scale: float = 0.5,
    jitter: float = 0.4,
    flip: bool = False,
) -> Tensor:
    """Crop, light and colour each photo at random, as another camera on another day would.

    photos: (B, 3, H, W) uint8 -> the same shape, float in 0..1.
    """
    floats = photos.float().div_(255)
    return _recolour(_crop(floats, generator, least_scale, flip), generator, jitter)


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
