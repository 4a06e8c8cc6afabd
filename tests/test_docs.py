"""Documents keep up with the code: the command line's page, the README's names and links."""

import importlib.util
import re
from pathlib import Path

import pytest

import evenplace as ep

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_command_line_s_page_is_its_help() -> None:
    spec = importlib.util.spec_from_file_location("make_cli", ROOT / "docs/make_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = (ROOT / "docs/cli.md").read_text()
    assert found == module.reference(), "run: python docs/make_cli.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_examples_exist(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        compile(code, str(page), "exec")
        for name in re.findall(r"\bep\.(\w+(?:\.\w+)?)", code):
            first, _, second = name.partition(".")
            found = getattr(ep, first)
            assert not second or hasattr(found, second), name


def test_verbs_in_the_readme_exist() -> None:
    known = (ROOT / "docs/cli.md").read_text()
    for verb in re.findall(r"\$ evenplace (\w+)", (ROOT / "README.md").read_text()):
        assert f"## {verb}" in known, verb


def test_the_python_and_the_command_line_build_the_same_network() -> None:
    """`build_model("dapr-m")` and the recipe must not start from different descriptors."""
    from evenplace.networks.methods import network_spec

    assert network_spec("dapr-m") == ep.read_recipe("dapr-m").network
