"""A device that is not there: its tensors say `meta`, compute on the CPU, and do not mix with it.

Torch refuses to compute with tensors of a GPU and of the CPU at once, and on a machine without a
GPU nobody hears of it.  Here the mixture is refused in torch's words; what torch allows is allowed
(copies, numbers without dimensions, indices on the CPU), and a generator has to be where its
numbers go.  What only a real GPU can tell is left open: operations and types its kernels lack,
autocast, pinned memory, streams, and the backends of torch.distributed.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE, _CPU = torch.device("meta"), torch.device("cpu")
_aten, _MAKE = torch.ops.aten, torch.tensor
_COPIES = (_aten.copy_.default, _aten._to_copy.default)
_BY_INDEX = (_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default)


class Elsewhere(Tensor):
    """A tensor of the other device.  here: its numbers, or, on torch's own meta, only its shape."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            here.size(),
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=DEVICE,
        )
        made.here = here
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Elsewhere({self.here!r})"

    def tolist(self) -> Any:
        return self.here.tolist()  # torch has none for tensors like these

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copied: Tensor = Elsewhere(self.here.clone())
        if isinstance(self, nn.Parameter):
            copied = nn.Parameter(copied, self.requires_grad)
        memo[id(self)] = copied
        return copied

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {})


class _EveryOperation(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the operations too that make tensors on the device or bring them there."""

    def __init__(self, home: torch.device) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.home = home

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        return _run(func, args, kwargs or {}, self.home)


def _run(func: Any, args: Any, kwargs: dict[str, Any], home: torch.device = _CPU) -> Any:
    """Compute here what belongs here or elsewhere, never a mixture.  home: of tensors elsewhere."""
    given = tree_leaves((args, kwargs))
    away = [one for one in given if isinstance(one, Elsewhere)]
    named = kwargs.get("device")
    goes = bool(away) if named is None else torch.device(named) == DEVICE
    if away and func not in _COPIES:
        _refuse_mixture(func, [args[0], *args[2:]] if func in _BY_INDEX else given)
    if goes and any(isinstance(one, torch.Generator) for one in given):
        raise RuntimeError(f"Expected a '{DEVICE}' device type for generator, not 'cpu' ({func})")
    args_here, kwargs_here = tree_map_only(Elsewhere, lambda one: one.here, (args, kwargs))
    if named is not None:
        kwargs_here["device"] = home if goes else _CPU
    found = func(*args_here, **kwargs_here)
    if not goes:
        return found
    found = tree_map_only(Tensor, Elsewhere, found)
    if not away:
        return found
    return return_and_correct_aliasing(func, args, kwargs, found)  # type: ignore[no-untyped-call]


def _refuse_mixture(func: Any, given: list[Any]) -> None:
    kinds = {isinstance(one, Elsewhere) for one in tree_leaves(given) if _has_size(one)}
    if len(kinds) > 1:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two ({func})"
        )


def _has_size(one: Any) -> bool:
    return isinstance(one, Tensor) and one.dim() > 0


@contextmanager
def other_device(*, shapes: bool = False) -> Iterator[torch.device]:
    """For as long as this lasts, what is moved to the device is elsewhere.

    shapes: nothing is computed but shapes; wrap what was built on torch's own meta device.
    """
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with (
            mock.patch("torch.autocast", _autocast),
            mock.patch("torch.tensor", _tensor),
            _EveryOperation(DEVICE if shapes else _CPU),
        ):
            yield DEVICE
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)


def _tensor(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
    """Torch's own, which forgets the numbers on their way to meta."""
    made = _MAKE(data, **kwargs)
    return made if device is None else made.to(device)


def _autocast(device_type: str, *args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Torch's own, which knows no meta device."""
    if device_type == DEVICE.type:
        return nullcontext()
    return torch.amp.autocast(device_type, *args, **kwargs)
