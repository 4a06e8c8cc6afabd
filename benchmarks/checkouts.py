"""Run other people's published code from a folder of checkouts, without installing any of it."""

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn

from evenplace.networks.convolutional import import_timm


@contextlib.contextmanager
def checkout(folder: Path, *names: str) -> Iterator[None]:
    """Put checkouts on the import path, and forget everything they imported afterwards."""
    torchvision_models()
    before, path = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(folder / name) for name in names]
    roots = tuple(str(folder / name) for name in names)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "") or "").startswith(roots):
                del sys.modules[name]


def torchvision_models() -> Any:
    """torchvision.models, beside a CPU torch."""
    import_timm()
    return importlib.import_module("torchvision.models")


def dinov2(folder: Path, arch: str) -> nn.Module:
    """Meta's own module for a hub name such as dinov2_vitb14_reg, with random weights."""
    with checkout(folder, "dinov2"):
        model: nn.Module = getattr(importlib.import_module("dinov2.hub.backbones"), arch)(
            pretrained=False
        )
    return model


@contextlib.contextmanager
def offline(folder: Path) -> Iterator[None]:
    """Let code that asks a hub for a pretrained backbone have one with random weights."""

    def hub_load(repository: str, name: str, **_: Any) -> nn.Module:
        if "dinov2" in repository:
            return dinov2(folder, name)
        return nn.Identity()

    def no_weights(url: str, **_: Any) -> dict[str, torch.Tensor]:
        return {}

    from torchvision.models._api import WeightsEnum

    def empty(self: Any, *_: Any, **__: Any) -> Any:
        return _Anything()

    with (
        mock.patch("torch.hub.load", hub_load),
        mock.patch("torch.hub.load_state_dict_from_url", no_weights),
        mock.patch.object(WeightsEnum, "get_state_dict", empty),
        mock.patch.object(nn.Module, "load_state_dict", _load_unless_empty(nn.Module)),
    ):
        yield


class _Anything(dict[str, torch.Tensor]):
    """A state dict with nothing in it, accepted by any module while offline."""


def _load_unless_empty(kind: type[nn.Module]) -> Any:
    original = kind.load_state_dict

    def load(self: nn.Module, state: Any, *args: Any, **kwargs: Any) -> Any:
        return None if not state else original(self, state, *args, **kwargs)

    return load


def stub(*names: str) -> Any:
    """Stand-ins for packages that a checkout imports and the part we run does not use."""
    modules = {}
    for name in names:
        module = types.ModuleType(name)
        module.__dict__.setdefault("__getattr__", lambda attribute: object)
        modules[name] = module
    return mock.patch.dict(sys.modules, modules)
