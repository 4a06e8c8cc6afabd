"""The example on foreign descriptors in docs/plugins.md runs as it stands, in under 20 lines."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"


def test_the_plug_in_example_finds_its_photo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "index_descriptors" in block]
    assert len([line for line in code.splitlines() if line.strip()]) < 20
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert said.startswith("0.jpg Position(east=500"), said
