"""The examples on foreign descriptors run as they stand, in under 20 lines."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE, SCRIPT = ROOT / "docs" / "plugins.md", ROOT / "examples" / "search_foreign.py"


def lines_of(code: str) -> int:
    """Lines with code on them; what a docstring says is not code."""
    body = ast.parse(code).body
    said = ast.get_docstring(ast.parse(code)) is not None
    rows = code.splitlines()[body[said].lineno - 1 :]
    return len([row for row in rows if row.strip()])


def test_the_plug_in_example_finds_its_photo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "from_descriptors" in block]
    assert lines_of(code) < 20
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert said.startswith("0.jpg Position(east=500"), said


def test_the_script_finds_its_photo(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of(SCRIPT.read_text()) < 20
    runpy.run_path(str(SCRIPT))
    said = capsys.readouterr().out
    assert said.startswith("0.jpg Position(east=500"), said
