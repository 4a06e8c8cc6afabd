"""The examples run, the pages name what exists, and their figures are the scripts' own."""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from evenplace import losses as ev

ROOT = Path(__file__).parents[2]
METHOD = ROOT / "docs" / "method.md"
PLUGINS = ROOT / "docs" / "plugins.md"
EXAMPLES = sorted((ROOT / "examples").glob("losses_*.py"))


def check_that_it_fell(printed: str) -> None:
    found = re.search(r"loss ([\d.]+) -> ([\d.]+)", printed)
    assert found is not None
    assert float(found[2]) < 0.8 * float(found[1])


@pytest.mark.parametrize("name", ["plain", "groups", "metric_learning"])
def test_example_trains(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"losses_{name}.py"))
    check_that_it_fell(capsys.readouterr().out)


@pytest.mark.skipif(importlib.util.find_spec("lightning") is None, reason="needs lightning")
def test_lightning_example_trains() -> None:
    script = ROOT / "examples" / "losses_lightning.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    check_that_it_fell(done.stdout)


def test_there_are_four_examples_of_under_forty_lines() -> None:
    assert len(EXAMPLES) == 4
    for example in EXAMPLES:
        assert len(example.read_text().splitlines()) < 40, example.name


def test_every_snippet_of_the_plug_in_page_runs() -> None:
    shared: dict[str, object] = {}
    loss_part = PLUGINS.read_text().split("## The losses")[1].split("\n## ")[0]
    for snippet in re.findall(r"```python\n(.*?)```", loss_part, flags=re.DOTALL):
        exec(snippet, shared)


def test_every_loss_is_on_the_method_page() -> None:
    page = METHOD.read_text()
    for name in ev.loss_names():
        module = type(ev.build_loss(name, [3, 4])).__name__
        assert f"{module}(" in page, f"{module} is not in docs/method.md"
        assert f"`{name}`" in page or name.startswith("low-visit-bias"), name


def test_every_figure_of_the_method_page_is_the_scripts_own() -> None:
    page, printed = METHOD.read_text(), (ROOT / "benchmarks" / "results" / "prior.md").read_text()
    titles = re.findall(r"<!-- from benchmarks/results/prior.md: (.*?) -->", page)
    assert set(titles) == set(re.findall(r"^## (.*)$", printed, flags=re.MULTILINE))
    for title in titles:
        section = printed.split(f"## {title}\n")[1].split("\n## ")[0]
        assert section.strip() in page, f"{title} differs; run python benchmarks/prior.py"
