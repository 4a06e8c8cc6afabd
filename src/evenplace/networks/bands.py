"""A convolutional network read at several depths: what is there, and roughly how high up.

The last layer of an ImageNet network tells a dog from a car; streets are told apart by windows,
cornices and kerbs, which the layers before it still see.  Photos are taken upright, so the upper
half of a map is roofs and sky and the lower half doors and pavement: two bands keep that apart
and still forgive a step to the left.

    B batch · H, W pixels · D channels · h, w cells of a map · A all levels together
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenplace.errors import SettingError
from evenplace.networks.backbone import Backbone, BackboneSpec, Features


class BandedBackbone(Backbone):
    """Stages whose output is one cell: the bands of some levels beside the mean of the last.

    Frozen whole (cut = all stages), a photo's cache is A numbers; cut before the first level
    that is read, the stages after it train.
    """

    def __init__(self, stages: nn.ModuleList, spec: BackboneSpec, cut: int) -> None:
        if spec.bands[0] + 1 < cut < spec.stages:
            raise SettingError(
                f"cut={cut} is between the levels that are read; "
                f"use {spec.stages} to freeze them all, or 0 to {spec.bands[0] + 1}"
            )
        super().__init__(stages, spec, cut)

    def trunk(self, photos: Tensor) -> Tensor:
        if self.cut < len(self.stages):
            return super().trunk(photos)
        with torch.no_grad():
            maps = self.normalise(photos).contiguous(memory_format=torch.channels_last)
            return self._read(maps, self._folded(list(self.stages)), 0)

    def features(self, maps: Tensor, prompts: Tensor | None = None) -> Features:
        if prompts is not None or self.cut == len(self.stages):
            return super().features(maps, prompts)
        return Features(self._read(maps, list(self.stages[self.cut :]), self.cut))

    def _read(self, maps: Tensor, stages: list[nn.Module], first: int) -> Tensor:
        """Run the stages from number `first` on and keep what each level shows.  -> (B, A, 1, 1)"""
        levels = [halves(maps)] if first - 1 in self.spec.bands else []
        for number, stage in enumerate(stages, first):
            maps = stage(maps)
            if number in self.spec.bands:
                levels.append(halves(maps))
        levels.append(maps.mean(dim=(-2, -1)))
        return torch.cat([F.normalize(level, dim=1) for level in levels], dim=1)[:, :, None, None]


def halves(maps: Tensor) -> Tensor:
    """The mean of a map's upper and of its lower half; a middle row counts for both.

    maps: (B, D, h, w) -> (B, 2 D).
    """
    return F.adaptive_avg_pool2d(maps, (2, 1)).transpose(1, 2).flatten(1)
