"""Which parts a network is made of, as a recipe writes it."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from evenplace.errors import SettingError
from evenplace.photos.pictures import Size


@dataclass(frozen=True)
class NetworkSpec:
    """Which parts a network is made of; enough to build it again.

    cut: stages frozen and cached; layer, facet: where to stop in the backbone and what to read
    there (`build_backbone`); power: GeM's first.  image_size: at which photos are asked, a side or
    height and width; training may see them at another (`TrainingSpec.train_size`).  projection:
    whether a linear layer may follow the aggregator; without one what is pooled is the descriptor.
    """

    backbone: str = "efficientnet-lite0"
    dim: Annotated[int, (1, 2**17)] = 512  # AnyLoc's giant has 49,152
    cut: Annotated[int | None, (0, 100)] = None
    image_size: Annotated[Size | None, (8, 4096)] = None
    power: Annotated[float, (0.01, 1000)] = 3.0
    aggregator: str = "gem"
    layer: Annotated[int | None, (0, 100)] = None
    facet: str = "token"
    projection: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_size", as_size(self.image_size))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def as_size(given: Any) -> Size | None:
    """A size as a recipe writes it: nothing, a side, or [height, width]."""
    sides = given if isinstance(given, (list, tuple)) else (given,)
    if given is None:
        return None
    if len(sides) > 2 or not all(type(side) is int and side > 0 for side in sides):
        raise SettingError(
            f"image_size={given!r} is no size; use a side such as 224, or [height, width]"
        )
    return tuple(sides) if len(sides) == 2 else sides[0]
