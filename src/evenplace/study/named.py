"""The named studies: every table and figure of the paper, and what we set beside it.

`evenplace study NAME` runs one.  Most are declared in studies/NAME.toml: `systems` has a row for
each system, [all] what rows have that say nothing else, [paper] the paper's numbers of a row.
`dapr-m-paper-small` is the paper's loss and distance to the letter on the embedded network,
`dapr-m-paper` with its DINOv2.
"""

import tomllib
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

from evenplace.errors import unknown_name
from evenplace.study.contest import contest, layer
from evenplace.study.elsewhere import elsewhere, second_look
from evenplace.study.spec import Study, System

_FOLDER = resources.files("evenplace.study") / "studies"


def find_study(name: str) -> Study:
    """A study by its name."""
    if name not in STUDIES:
        raise unknown_name("study", name, STUDIES)
    return STUDIES[name]()


def read_study(name: str) -> Study:
    """A study as its file declares it."""
    told = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    shared, paper = told.pop("all", {}), told.pop("paper", {})
    systems = [
        System(**{key: frozen(value) for key, value in {**shared, **row}.items()},
               paper=paper.get(row["name"], {}))
        for row in told.pop("systems")
    ]  # fmt: skip
    rest = {key: frozen(value) for key, value in told.items()}
    return Study(name, systems=tuple(systems), **rest)


def frozen(value: Any) -> Any:
    """Lists of a file as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


_DECLARED = [file.name.removesuffix(".toml") for file in _FOLDER.iterdir()]
STUDIES: dict[str, Callable[[], Study]] = {
    **{name: partial(read_study, name) for name in sorted(_DECLARED)},
    "contest": contest,
    "elsewhere": elsewhere,
    "layer": layer,
    "second-look": second_look,
}
