"""Import timm beside a CPU build of torch.

timm imports torchvision, and the registry's torchvision wheel is built for CUDA: beside a CPU
torch its compiled operators do not load and its import stops at `torchvision::nms does not
exist`.  Nothing we use calls the two operators it then registers fake kernels for, so declaring
their signatures is enough.  Where torchvision imports as it is, this module does nothing.
"""

import importlib
import sys
from types import ModuleType

import torch

_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []  # a library's operators live as long as it does


def import_timm() -> ModuleType:
    """Return the timm module, declaring torchvision's two missing operators first if need be."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        _declare_missing_operators()
    return importlib.import_module("timm")


def _declare_missing_operators() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # the half-imported package would be found again
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for operator in ("nms", "qnms"):
        library.define(operator + _SIGNATURE)  # type: ignore[no-untyped-call]
    _declared.append(library)
