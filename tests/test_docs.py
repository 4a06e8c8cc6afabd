"""Documents keep up with the code: the command line's page, the README's names and links."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import evenplace as ep
from tests.documents.blocks import PAGES, TYPED, Block, read_blocks
from tests.documents.names import check_names
from tests.test_layers import ROOMS

ROOT = Path(__file__).parent.parent


def script(name: str) -> Any:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_line_s_page_is_its_help() -> None:
    found = (ROOT / "docs/cli.md").read_text()
    assert found == script("make_cli").reference(), "run: python docs/make_cli.py"


def test_the_pictures_show_the_rooms_and_who_imports_whom() -> None:
    """But for the sizes of the rooms, which change every day."""
    pictures = script("make_pictures")
    for name in ("architecture", "framework"):
        drawn, kept = (
            re.sub(r"\d+ files, [\d.]+k lines", "", text)
            for text in (getattr(pictures, name)(), (pictures.PICTURES / f"{name}.svg").read_text())
        )
        assert drawn == kept, "run: python docs/make_pictures.py"
    assert set(pictures.ROOMS) == set(ROOMS) - {"errors", "arrays", "demo", "__main__"}
    assert pictures.imports()["evaluation"] >= {"retrieval", "photos"}
    assert "evaluation" not in pictures.imports()["retrieval"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_files_that_a_text_names_are_there() -> None:
    """In the documents, in docstrings and in comments: a file that moved takes its name along."""
    python = [
        path for room in ("src", "tests", "benchmarks") for path in (ROOT / room).rglob("*.py")
    ]
    there = {path.relative_to(ROOT).as_posix() for path in [*python, *ROOT.glob("docs/*.py")]}
    named = {
        (path.name, name)
        for path in [*python, *PAGES, ROOT / "CONTRIBUTING.md"]
        for name in re.findall(r"`((?:\w+/)*[a-z]\w*\.py)`", path.read_text())
    }
    assert len(named) > 20
    gone = [one for one in named if not any(f"/{file}".endswith(f"/{one[1]}") for file in there)]
    assert not gone


BLOCKS = [block for page in PAGES for block in read_blocks(page)]
KINDS = {*TYPED, "bash", "toml", "json", "yaml", "dockerfile", ""}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_names_what_exists(block: Block) -> None:
    check_names(block)


def test_every_block_is_typed_or_says_why_not() -> None:
    """`bash` is typed by tests/serve/test_client.py; files and answers are no commands."""
    for block in BLOCKS:
        assert block.kind in KINDS, f"{block}: {block.kind!r} is typed by no test"
        assert block.kind != "bash" or block.unrun or block.document == "docs/serve.md", block
        assert "$ " not in block.text or block.kind in ("console", "bash"), block
    marks = sum(page.read_text().count("<!-- not run:") for page in PAGES)
    assert marks == sum(bool(block.unrun) for block in BLOCKS), "a mark stands above no block"


def test_the_python_and_the_command_line_build_the_same_network() -> None:
    """`build_model("dapr-m")` and the recipe must not start from different descriptors."""
    from evenplace.networks.methods import network_spec

    assert network_spec("dapr-m") == ep.read_recipe("dapr-m").network
