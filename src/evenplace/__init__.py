"""EvenPlace: find where a photo was taken, on the quiet street as on the busy avenue.

Names load on first use, so that importing the package is quick and does not load torch.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "evenplace.photos": ("Photos", "open_picture", "read_photos"),
    "evenplace.photos.protocols": ("read_protocol",),
    "evenplace.places": (
        "FocalGrid",
        "Given",
        "Grid",
        "GridGroups",
        "Intersection",
        "KdTree",
        "Places",
        "Quadtree",
    ),
    "evenplace.city": ("draw_city",),
    "evenplace.networks.methods": ("METHODS",),
    "evenplace.networks.build_model": ("build_describer", "build_model", "load_official"),
    "evenplace.describe.describer": ("Describer",),
    "evenplace.networks.build_backbone": ("BACKBONES",),
    "evenplace.networks.aggregators": ("AGGREGATORS",),
    "evenplace.describe.export": ("export_onnx",),
    "evenplace.training.recipe": ("Recipe", "read_recipe"),
    "evenplace.retrieval": ("Search", "open_index", "verify_index"),
    "evenplace.retrieval.build": ("index_descriptors",),
    "evenplace.retrieval.update": ("add_photos", "remove_photos", "replace_photos"),
    "evenplace.retrieval.descriptor_files": ("read_descriptors",),
    "evenplace.evaluation": ("Truth", "compare", "evaluate", "score"),
    "evenplace.run.run": ("Run", "from_descriptors", "train"),
    "evenplace.report.evaluation": ("write_report",),
    "evenplace.serve.client": ("Client",),
}
_MODULES = {
    "errors": "evenplace.errors",
    "losses": "evenplace.losses",
    "rerank": "evenplace.retrieval.rerank",
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_NAMES, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _NAMES:
        try:
            return getattr(importlib.import_module(_NAMES[name]), name)
        except ModuleNotFoundError as cause:
            from evenplace.errors import SettingError, missing_package

            if text := missing_package(cause):
                raise SettingError(text) from cause
            raise
    raise AttributeError(f"evenplace has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
