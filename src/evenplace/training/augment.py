"""Other views of the same photo, made where the batch lives.

Crops and colours are drawn for a whole batch at once, for the views that are cached; hue and
RandAugment are torchvision's own, photo by photo, as the trainers of this field have them.

    B batch · H, W pixels
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from evenplace.networks.convolutional import import_timm


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
        kind = "flipped" if self.flip else "cropped"
        if self == usual:
            return kind
        name = f"{kind}{self.crop:g}j{self.jitter:g}h{self.hue:g}r{self.randaugment}"
        return name + ("tv" if self.hue or self.randaugment else "")  # torchvision's


def augmented(photos: Tensor, generator: torch.Generator, how: Augmentation) -> Tensor:
    """Crop, light and colour each photo at random, as another camera on another day would.

    photos: (B, 3, H, W) uint8 -> the same shape, float in 0..1.
    """
    if (how.hue or how.randaugment) and len(photos):
        return _by_torchvision(photos, generator, how)
    seen = photos.float().div_(255)
    if how.crop < 1 or how.flip:
        seen = _crop(seen, generator, how.crop, how.flip)
    return _recolour(seen, generator, how.jitter) if how.jitter else seen


def _by_torchvision(photos: Tensor, generator: torch.Generator, how: Augmentation) -> Tensor:
    """The published transforms, whose dice are torch's own: set for the while, and put back."""
    change = _transforms(how, tuple(photos.shape[-2:]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
        return torch.stack([change(photo) for photo in photos]).float().div_(255)


def _transforms(how: Augmentation, size: tuple[int, ...]) -> Any:
    import_timm()  # which makes torchvision import beside a CPU build of torch
    from torchvision.transforms import InterpolationMode, v2

    parts = [v2.ColorJitter(how.jitter, how.jitter, how.jitter, how.hue)]
    if how.crop < 1:
        parts.append(v2.RandomResizedCrop(size, scale=(how.crop, 1.0)))
    if how.flip:
        parts.append(v2.RandomHorizontalFlip())
    if how.randaugment:
        parts.append(v2.RandAugment(how.randaugment, interpolation=InterpolationMode.BILINEAR))
    return v2.Compose(parts)


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
    """Scale brightness, contrast and saturation by factors in 1 ± jitter.

    As torchvision's ColorJitter does, in the order of its arguments.
    """
    draw = 1 + (torch.rand(len(photos), 3, 1, 1, 1, generator=generator) * 2 - 1) * jitter
    brightness, contrast, saturation = draw.to(photos.device).unbind(1)  # each (B, 1, 1, 1)
    photos = (photos * brightness).clamp_(0, 1)
    middle = _grey(photos).mean(dim=(2, 3), keepdim=True)  # (B, 1, 1, 1)
    photos = torch.lerp(middle, photos, contrast).clamp_(0, 1)
    return torch.lerp(_grey(photos), photos, saturation).clamp_(0, 1)


def _grey(photos: Tensor) -> Tensor:
    """How bright each pixel looks: (B, 3, H, W) -> (B, 1, H, W)."""
    weights = torch.tensor([0.2989, 0.587, 0.114], device=photos.device)
    return torch.einsum("bchw,c->bhw", photos, weights)[:, None]
