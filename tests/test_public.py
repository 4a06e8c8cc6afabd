"""The public surface: what `import evenplace` promises, and what it costs."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenplace as ep

ROOT = Path(__file__).parents[1]
BY_HTTP = {"sign_in", "uptime_s"}  # asked for by whoever speaks to the service


def test_every_public_name_can_be_had() -> None:
    for name in ep.__all__:
        assert getattr(ep, name) is not None


def test_the_public_names_are_these() -> None:
    assert set(ep.__all__) >= {
        "read_photos", "Photos", "Grid", "Places", "build_model", "train", "Run", "Search",
        "evaluate", "write_report", "losses", "rerank", "draw_city",
    }  # fmt: skip


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="read_photos"):
        _ = ep.readphotos


def test_importing_is_quick_and_quiet() -> None:
    code = "import evenplace, sys; print('torch' in sys.modules, 'numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"
    assert run.stderr == ""


def test_no_function_or_field_is_there_for_its_test_alone() -> None:
    """Its name is spoken somewhere in the package, in a document, an example or a benchmark."""
    spoken = {word for path in _prose() for word in re.findall(r"\w+", path.read_text())}
    defined: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            defined |= set(_defined(node))
            if path.name != "__init__.py" or not isinstance(node, ast.Constant):  # its __all__
                spoken |= set(_spoken(node))
    assert {name for name in defined - spoken if not name.startswith("__")} == BY_HTTP


def test_a_wheel_carries_every_file_beside_the_code() -> None:
    """Recipes, weights and assets: all that is neither code nor made by running it."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    carried = [pattern.removeprefix("**/") for pattern in told["package-data"]["evenplace"]]
    package = ROOT / "src/evenplace"
    beside = [path for path in package.rglob("*") if path.is_file()]
    beside = [path for path in beside if path.suffix not in (".py", ".pyc")]
    assert len(beside) > 50
    for path in beside:
        assert any(path.relative_to(package).match(pattern) for pattern in carried), path


def _prose() -> Iterator[Path]:
    yield ROOT / "README.md"
    for folder in ("docs", "examples", "benchmarks"):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in (".md", ".py"))
    yield from (path for path in (ROOT / "src").rglob("*") if path.suffix in (".js", ".html"))


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    if isinstance(node, ast.ClassDef):
        fields = (field.target for field in node.body if isinstance(field, ast.AnnAssign))
        yield from (field.id for field in fields if isinstance(field, ast.Name))


def _spoken(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60:
        yield from re.findall(r"\w+", node.value)
