"""The paper's page, typed as the documents have it: every study trained and asked, in small."""

import re
import sys
from pathlib import Path

import pytest

from evenplace.cli import main
from evenplace.study.paper_page import FIRST, ITEMS, ORDER, paper_studies

SMALL = ("epochs=1", "views=1", "folds=0", "verify=0")


def typed(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["evenplace", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code


@pytest.mark.long
def test_the_paper_is_made_whole_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["study", "paper", "--data", "town", "--photos", "60", "--queries", "20"]
    words += ["--out", str(tmp_path), *(f"--set={setting}" for setting in SMALL)]
    typed(monkeypatch, *words)
    page = tmp_path / "paper-town" / "index.html"
    text = page.read_text("utf-8")
    for item in ITEMS:
        assert f"<h2>{item.number}: {item.title}</h2>".replace("'", "&#39;") in text
    assert text.count("<figure") >= sum(bool(item.figures) for item in ITEMS)
    for name in ORDER:
        assert re.search(rf'<th scope="row">{name}</th><td>\d+</td><td>\d', text)  # its time
    runs = sorted(path.name for path in tmp_path.glob("runs/*"))
    assert len(runs) == trainings()
    made = {file: file.stat().st_mtime_ns for file in tmp_path.glob("runs/*/model.safetensors")}
    page.unlink()
    typed(monkeypatch, *words)
    assert page.exists()
    assert made == {file: file.stat().st_mtime_ns for file in made}


def trainings() -> int:
    """How many different recipes the studies name."""
    recipes = {
        system.build_recipe(SMALL, 0).to_toml()
        for study in paper_studies()
        for system in study.systems
    }
    return len(recipes)


def test_systems_that_several_studies_name_are_trained_once() -> None:
    """Of 80 systems 46 are trained: a first version is minutes on two cores, not hours."""
    systems = [system for study in paper_studies() for system in study.systems]
    assert len(systems) >= 80
    assert trainings() <= 46
    assert FIRST == {"photos": 300, "queries": 100}
