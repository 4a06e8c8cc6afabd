"""Looks up what a block names without running it: verbs, flags, recipes, Python names."""

import ast
import importlib
import re
from typing import Any

from typer.main import get_command

import evenplace as ep
from evenplace.cli import app
from evenplace.losses import loss_names
from evenplace.photos.protocols import PROTOCOLS
from evenplace.study import find_study
from evenplace.training.recipe import find_recipe
from tests.documents.blocks import ROOT, Block, Command, read_commands


def check_names(block: Block) -> None:
    """Raise where a block names something that is not there."""
    if block.kind == "console":
        for command in read_commands(block):
            check_command(command)
    elif block.kind == "python":
        check_python(block.text)


def check_command(command: Command) -> None:
    """Parse a command line as the program would, to its last flag, and stop before it runs."""
    words = list(command.words)
    if words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M), words[1]
        return
    if words[0] == "torchrun":
        words = words[words.index("-m") + 1 :]
    assert words[0] == "evenplace", f"nobody knows how to type {words[0]!r}"
    given = _parse(get_command(app), words[1:])
    if given.get("method") and not given["method"].endswith(".toml"):
        find_recipe(given["method"], given.get("preset") or "recommended")
    if given.get("loss"):
        assert given["loss"] in loss_names()
    if given.get("protocol"):
        assert given["protocol"] in PROTOCOLS
    if "development" in given and given["name"] != "paper":  # which is all of the paper's
        find_study(given["name"])


def _parse(program: Any, words: list[str]) -> dict[str, Any]:
    """The settings a verb would be called with; click refuses a verb or flag it does not know."""
    context = program.make_context("evenplace", words)
    while hasattr(program, "resolve_command"):
        _, program, rest = program.resolve_command(context, context._protected_args + context.args)
        context = program.make_context(program.name, rest, parent=context)
    return dict(context.params)


def check_python(code: str) -> None:
    """The code compiles, what it imports is there, and so is every `ep.name`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"
    for path in re.findall(r"\bep((?:\.\w+)+)", code):
        found: Any = ep
        for name in path[1:].split("."):
            if isinstance(found, type) and not hasattr(found, name):
                break  # a field of an instance
            found = getattr(found, name)
