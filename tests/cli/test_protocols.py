"""Every named test, typed: trained on GSV-Cities' stand-in, indexed and evaluated in its layout."""

import sys
from pathlib import Path

import pytest

from evenplace.cli import main
from tests.standins import Standins

TINY = [f"--set={one}" for one in ("epochs=1", "image_size=64", "views=1")]
TESTS = {
    "sfxl-v1": ("sfxl", "25 m"),
    "sfxl-v2": ("sfxl", "25 m"),
    "msls-val-740": ("msls", "25 m"),
    "msls-val-all": ("msls", "25 m"),
    "pitts30k-test": ("pitts30k", "25 m"),
    "nordland-1f": ("nordland_tenth", "±1 frames"),
    "nordland-2f": ("nordland", "±2 frames"),
    "nordland-10f": ("nordland", "±10 frames"),
}


def type_words(*words: object) -> None:
    old, sys.argv = sys.argv, ["evenplace", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as stop:
            main()
    finally:
        sys.argv = old
    assert not stop.value.code, words


def typed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    type_words(*words)
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def run(standins: Standins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "boq"
    type_words("train", standins.gsv, "--method", "boq-small", "--run", folder, *TINY)
    return folder


@pytest.mark.parametrize("name", TESTS)
def test_a_named_test_runs_in_its_own_layout(
    name: str, run: Path, standins: Standins, capsys: pytest.CaptureFixture[str]
) -> None:
    layout, within = TESTS[name]
    root = getattr(standins, layout)
    part = ("--protocol", name, "--allow-partial")
    said = typed(capsys, "index", run, "--database", root, *part)
    assert "this database's own" in said
    assert "a part of it" in said
    said = typed(capsys, "evaluate", run, "--queries", root, *part)
    assert f"found within {within} (a part of it" in said
    assert "places found by means of the database's own places" in said


def test_a_city_that_was_trained_on_is_found_by_the_classifier(
    run: Path, standins: Standins, capsys: pytest.CaptureFixture[str]
) -> None:
    said = typed(capsys, "index", run, "--database", standins.gsv, "--city", "Boston")
    assert "own" not in said
    said = typed(capsys, "evaluate", run, "--queries", standins.gsv, "--city", "Boston",
                 "--shortlist", "3")  # fmt: skip
    assert "places found by the classifier" in said


def test_cities_are_chosen_by_every_verb(
    standins: Standins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = typed(capsys, "audit", standins.gsv, "--out", tmp_path / "a.html")
    for word in ("Boston", "London", "Melbourne", "all"):
        assert word in said
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "City by city" in page
    said = typed(capsys, "audit", standins.gsv, "--zone", "19", "--out", tmp_path / "b.html")
    assert "75 photos in" in said
    sheet = tmp_path / "sheet.jpg"
    said = typed(capsys, "photos", "check", standins.gsv, "--city", "London", "--sheet", sheet)
    assert "UTM zone 30" in said


def test_a_study_trains_on_one_set_and_asks_others(
    standins: Standins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "plug-in", "--train", standins.gsv, "--city", "Boston", "--city", "London"]
    words += ["--test", standins.msls, "--protocol", "msls-val-740", "--system", "BoQ"]
    said = typed(capsys, *words, "--seeds", 1, "--out", tmp_path, *TINY)
    table = [line for line in said.splitlines() if line.startswith("| BoQ")]
    assert len(table) >= 2, said  # with low-visit bias and without
    assert "msls-val-740 (part)" in said
    assert "photos of Boston, London, seeds 0" in said
    written = tmp_path / "plug-in-transfer"
    assert "figures/tests.svg" in (written / "tables.md").read_text()
    bars = (written / "figures/tests.csv").read_text().splitlines()
    systems = {tuple(line.split(",")[:2]) for line in bars[1:]}  # a panel's method, and its loss
    assert {("BoQ", "plain"), ("BoQ", "+ LB")} <= systems
    assert len(bars) == 1 + 4 * len(systems)  # overall and by tier
    shown = float(table[0].split("|")[2])
    assert float(bars[1].split(",")[-1]) == pytest.approx(shown, abs=0.05)


@pytest.mark.long
def test_uncertainty_is_judged_on_every_test(
    standins: Standins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "confidence", "--train", standins.gsv, "--city", "Boston"]
    words += ["--test", standins.msls, "--test", standins.pitts30k]
    words += ["--system", "recommended", "--seeds", 1, "--out", tmp_path, *TINY]
    words += ["--set=search.folds=2", "--set=verify=0"]
    said = typed(capsys, *words)
    rows = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]]
            for line in said.splitlines() if line.startswith("| ")}  # fmt: skip
    assert rows["set and system"][:4] == ["l2", "sue", "cfd", "own"]
    assert rows["Nordland: the paper"][:4] == [".80", ".86", ".86", ""]
    asked = [name for name in rows if name.endswith(": recommended")]
    assert len(asked) == 2
    assert all(0 <= float(cell) <= 1 for name in asked for cell in rows[name])
