"""What a setting of a recipe may be: its kind, as the dataclass has it, and its range.

Ranges are written here, those of the network too, because a recipe is where they are set.

A value that cannot be meant is refused where it is written, not hours later.
"""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from evenplace.errors import SettingError

_MANY = 10**9
RANGES: dict[str, dict[str, tuple[float, float]]] = {  # least and largest, both allowed
    "network": {
        "dim": (1, 2**17),  # AnyLoc's giant has 49,152
        "cut": (0, 100),
        "image_size": (8, 4096),
        "power": (0.01, 1000),
        "layer": (0, 100),
    },
    "places": {
        "cell": (0.01, 10**6),
        "min_photos": (1, _MANY),
        "groups": (1, 1000),
        "max_photos": (1, _MANY),
        "heading_bins": (1, 360),
        "heading_groups": (1, 360),
        "groups_in_use": (0, 10**6),
        "tolerance": (0, 180),
    },
    "training": {
        "epochs": (0, 10**6),
        "batch": (1, 10**6),
        "lr": (0, 100),
        "lr_classifier": (0, 100),
        "weight_decay": (0, 100),
        "views": (1, 1000),
        "seed": (0, 2**32 - 1),
        "steps": (0, _MANY),
        "photos_per_place": (2, 10**4),
        "crop": (0, 1),
        "jitter": (0, 1),
        "hue": (0, 0.5),
        "randaugment": (0, 100),
        "momentum": (0, 1),
        "warmup": (0, 10**6),
        "final": (0, 1),
        "factor": (0, 1),
        "milestones": (0, 10**6),
        "patience": (1, 10**6),
        "accumulate": (1, 10**6),
        "average": (0, 1),
        "validation": (0, 0.9),
        "checkpoint": (0, _MANY),
        "train_size": (8, 4096),
        "min_lr": (0, 100),
    },
    "mining": {
        "queries": (1, _MANY),
        "negatives": (1, 10**4),
        "positive": (0, 10**6),
        "negative": (0, 10**6),
        "pool": (0, _MANY),
        "refresh": (1, _MANY),
        "generations": (1, 1000),
        "positives": (1, 10**4),
        "temperatures": (1e-6, 1000),
        "soft_weight": (0, 1000),
        "alike": (1, 10**6),
        "reach": (0, 10**6),
    },
    "search": {"shortlist": (1, _MANY), "folds": (0, 1000), "verify": (0, 1000)},
}
_WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "text"}


def check_settings(table: str, kind: type[Any], values: Mapping[str, Any]) -> None:
    """Refuse the first value that is of another kind than `kind` has it, or out of its range."""
    hints = get_type_hints(kind)
    for name, value in values.items():
        if not _fits(value, hints[name]):
            raise SettingError(f"{table}.{name}={value!r} must be {_words(hints[name])}")
        low, high = RANGES[table].get(name, (-math.inf, math.inf))
        for number in value if isinstance(value, (tuple, list)) else [value]:
            if isinstance(number, Real) and float(number) < low:
                raise SettingError(f"{table}.{name}={number} must be at least {low}")
            if isinstance(number, Real) and float(number) > high:
                raise SettingError(f"{table}.{name}={number} must be at most {high}")


def check_finite(table: str, values: Mapping[str, Any]) -> None:
    """Refuse numbers that are none, in a table whose keys are the business of others."""
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise SettingError(f"{table}.{name}={value!r} must be a finite number")


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is tuple:
        inside = get_args(hint)[0]
        return isinstance(value, (tuple, list)) and all(_fits(one, inside) for one in value)
    if hint is float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        return number and math.isfinite(float(value))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    if isinstance(hint, UnionType):
        return " or ".join(_words(one) for one in get_args(hint) if one is not NoneType)
    if get_origin(hint) is tuple:
        return "a list, each " + _words(get_args(hint)[0])
    return _WORDS[hint]
