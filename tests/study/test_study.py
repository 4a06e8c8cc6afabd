"""Studies, run for real on a few drawn photos: resumed, paired, printed."""

import inspect
import io
import itertools
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenplace.cli import main
from evenplace.errors import PhotoError, SettingError
from evenplace.report.figures import tier_bars
from evenplace.report.tables import spread
from evenplace.retrieval import Search
from evenplace.run.run import Run
from evenplace.study import (
    STUDIES,
    Findings,
    Study,
    System,
    confidence_tables,
    find_study,
    read_splits,
    run_study,
    write_findings,
)
from evenplace.study.confidence_tables import abstention_table
from evenplace.study.figures import CAPTIONS, FIGURES, draw_lines
from evenplace.study.paper_page import ITEMS, ORDER, Item, markdown_html, paper_studies, write_paper
from evenplace.study.runs import ENGINE, engine_settings, minutes
from evenplace.study.tables import (
    gain_table,
    pipeline_table,
    query_columns,
    read_bytes,
    recall_by_area,
)
from evenplace.study.write import TABLES
from evenplace.training.recipe import find_recipe
from tests.drawn import draw_photos, rehearsed

TINY = ("epochs=1", "image_size=64", "cut=9", "dim=16", "views=1", "folds=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("photos")
    draw_photos(where, np.random.default_rng(0).uniform(0, 120, (70, 2)))
    return where


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def found(folder: Path, out: Path) -> Findings:
    """Two systems that share a training, and one of its own, on two splits."""
    study = Study(
        "tiny",
        "Does it run?",
        (
            System("L2", "cross-entropy", paper={"paper R@1 v1": "75.8"}),
            System("CFD", "cross-entropy", search={"rerank": "cfd", "alpha": 0.5}),
            System("fused", "dapr-m-bands", at=("kappa", 0.5)),
        ),
        tables=tuple(TABLES),
        figures=("tiers", "lines", "areas", "precision-recall", "risk", "reliability", "stages"),
        timed=2,
    )
    splits = read_splits(str(folder), 2, out / "data", queries=12)
    return run_study(study, splits, out, settings=TINY)


def test_systems_that_differ_in_search_alone_share_a_training(found: Findings) -> None:
    l2, cfd, fused = found.outcomes
    assert l2.runs == cfd.runs
    assert set(l2.runs).isdisjoint(fused.runs)
    assert l2.joint.overall.queries == sum(part.overall.queries for part in l2.parts)
    assert l2.parts[0].predictions.paths == fused.parts[0].predictions.paths


def test_a_finished_study_is_read_not_run(found: Findings, out: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*") if file.is_file()}
    again = run_study(found.study, found.splits, out, settings=TINY)
    for one, other in zip(again.outcomes, found.outcomes, strict=True):
        assert one.joint.as_dict() == other.joint.as_dict()
    after = {file: file.stat().st_mtime_ns for file in out.rglob("*") if file.is_file()}
    assert after == before


def test_a_stopped_study_goes_on(found: Findings, out: Path) -> None:
    answers = found.of("CFD").answers[0] / "timed.txt"
    text = answers.read_text()
    answers.unlink()
    again = run_study(found.study, found.splits, out, settings=TINY)
    assert again.of("CFD").parts[0].recall == found.of("CFD").parts[0].recall
    assert answers.exists()
    answers.write_text(text)


def test_nothing_is_trained_or_asked_twice(found: Findings, out: Path) -> None:
    """Other names, the recipe's own settings said aloud, a second network: all are there."""
    before = set(out.glob("answers/*")), set(out.glob("runs/*"))
    usual = find_recipe("cross-entropy").search.rerank
    alike = (System("another name", "cross-entropy"),
             System("said aloud", "cross-entropy", search={"rerank": usual}))  # fmt: skip
    again = run_study(Study("alike", "?", alike), found.splits, out, settings=TINY)
    assert (set(out.glob("answers/*")), set(out.glob("runs/*"))) == before
    assert [one.joint.name for one in again.outcomes] == ["another name", "said aloud"]
    assert {one.answers for one in again.outcomes} == {found.of("L2").answers}
    pair = (System("CosPlace", "cosplace-small"), System("pair", "dc-cosplace-small"))
    run_study(Study("pair", "?", pair), found.splits[:1], out, settings=TINY)
    assert len(set(out.glob("runs/*")) - before[1]) == 2  # the pair's ranker is CosPlace's network


def test_a_changed_setting_is_another_run(found: Findings) -> None:
    system = found.study.systems[0]
    one, two = (system.build_recipe(words, 0) for words in (TINY, (*TINY, "lr=0.5")))
    assert one != two
    assert one.training.seed == 0
    assert find_recipe("cross-entropy").training.epochs != 1  # what `settings` changed


def test_tables_and_figures_are_written(
    found: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenplace.study.confidence_tables.MANY", 4)  # photos of each other city
    text = write_findings(found, tmp_path, command="evenplace study tiny").read_text()
    queries = found.outcomes[0].joint.overall.queries
    assert f"{queries} queries of 2 seeds" in text
    assert "75.8" in text
    assert "CFD − L2" in text
    assert " ± " in text
    assert "McNemar" in text
    rows = [line.split(" | ") for line in text.split("## Photos of other cities")[1].splitlines()]
    asked = [int(row[2]) for row in rows if row[0] == "| L2"]
    assert asked[-1] == sum(asked[:-1]) > 0  # the last row is of all cities
    for name in found.study.figures:
        for suffix, magic in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
            assert (tmp_path / "figures" / f"tiny-{name}{suffix}").read_bytes()[:5][:4] == magic[:4]
        assert f"figures/tiny-{name}.svg" in text


def test_seeds_split_differently_and_never_share_a_spot(folder: Path, tmp_path: Path) -> None:
    first, second = read_splits(str(folder), 2, tmp_path)
    assert first.queries.paths != second.queries.paths
    assert not set(first.database.paths) & set(first.queries.paths)
    assert first.digest != second.digest
    assert first.digest == read_splits(str(folder), 1, tmp_path)[0].digest


def test_development_never_sees_the_test_queries(folder: Path, tmp_path: Path) -> None:
    (test,), (inner,) = (
        read_splits(str(folder), 1, tmp_path, development=choice) for choice in (False, True)
    )
    seen = {*inner.train.paths, *inner.database.paths, *inner.queries.paths}
    assert seen <= set(test.database.paths)
    assert not seen & set(test.queries.paths)
    assert not set(inner.database.paths) & set(inner.queries.paths)
    assert len(inner.queries)


def test_abstention_keeps_what_the_learned_threshold_lets_through(
    found: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confidence_tables, "WANTED", (0.5,))
    assert "No system here" in abstention_table(found)
    one, run = found.of("fused"), tmp_path / "run"
    part = one.parts[0]
    shutil.copytree(one.runs[0], run)
    answers = rehearsed(
        np.arange(60.0), np.arange(60) >= 30, "fused", Run(run).recipe.search.confidence
    )
    answers.write(run / "calibration.json")
    learned, raw = answers.calibrate(), np.linspace(0, 60, len(part.predictions.right))
    sure = learned(raw.astype(np.float32))
    part = replace(part, predictions=replace(part.predictions, confidence=sure))
    right = part.predictions.right
    alone = replace(one, parts=(part,), runs=(run,), joint=part)
    text = abstention_table(replace(found, outcomes=(alone,)))
    wrong = int((~right[sure >= np.quantile(sure, 0.25)]).sum())
    assert f"75% surest answers {wrong} are wrong" in text
    kept = sure >= learned.threshold(0.5)
    assert 0 < kept.sum() < len(kept)
    share = f"{100 * right[kept].mean():.1f} % right ({right[kept].sum()} of {kept.sum()})"
    assert f"| 50% | in 1 of 1 | {share}" in text


def test_a_folder_with_queries_is_taken_as_it_is(tmp_path: Path) -> None:
    spots = np.random.default_rng(1).uniform(0, 60, (20, 2))
    draw_photos(tmp_path / "database", spots)
    draw_photos(tmp_path / "queries", spots[:5], seed=1)
    one, two = read_splits(str(tmp_path), 2, tmp_path / "data", heading=30)
    assert (len(one.database), len(one.queries)) == (20, 5)
    assert (one.seed, two.seed) == (0, 1)
    assert one.truth.heading == 30


def test_recall_by_area_is_counted_query_by_query(found: Findings) -> None:
    """The smallest 30 % of the places, 40 %, the rest: sorted and counted by hand."""
    scores = found.outcomes[0].parts[0]
    areas = np.random.default_rng(0).permutation(np.arange(1.5, len(scores.places) + 1))
    known = recall_by_area(replace(scores, places=replace(scores.places, areas=areas)))
    ranked = sorted(range(len(areas)), key=lambda place: areas[place])
    third = int(0.3 * len(ranked) + 1e-9)
    bins = ranked[:third], ranked[third : len(ranked) - third], ranked[len(ranked) - third :]
    asked = zip(scores.predictions.places.tolist(), scores.predictions.right.tolist(), strict=True)
    of_bin: list[list[bool]] = [[], [], []]
    for place, right in asked:
        for number, places in enumerate(bins):
            if place in places:
                of_bin[number].append(right)
    assert sum(map(len, of_bin)) == (scores.predictions.places >= 0).sum() > 0
    for got, rights in zip(known, of_bin, strict=True):
        share = 100 * sum(rights) / len(rights) if rights else float("nan")
        assert got.queries == len(rights)
        assert got.recall[1] == pytest.approx(share, nan_ok=True)


@pytest.mark.parametrize(
    ("values", "text"), [([1.0], "1.0"), ([1.0, 3.0], "2.0 ± 1.4"), ([float("nan")], "–")]
)
def test_a_spread_is_over_seeds(values: list[float], text: str) -> None:
    assert spread(values) == text


@pytest.mark.parametrize("name", [*STUDIES])
def test_the_help_names_every_study(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    listed = page[page.index("Usage: evenplace study") :].partition("Options:")[0]
    assert re.search(rf"\b{name}\b", listed)


@pytest.mark.parametrize("name", [*STUDIES])
def test_every_named_study_builds_recipes_that_train(name: str) -> None:
    from evenplace.losses import build_loss

    for system in find_study(name).systems:
        recipe = system.build_recipe((), 3)
        assert recipe.training.seed == 3
        build_loss(recipe.loss.name, counts=[3, 2, 1], **recipe.loss.settings)


def test_studies_cover_the_paper_s_tables() -> None:
    assert set(STUDIES) >= {
        "losses", "modules", "plug-in", "sensitivity", "partition", "margin", "distance",
        "confidence", "cost",
    }  # fmt: skip
    values = {one.at for one in find_study("sensitivity").systems if one.at}
    assert {("beta", 0.01), ("kappa", 0.05), ("alpha", 0.7)} <= values


def test_losses_that_are_compared_have_one_scale() -> None:
    """What a file says aloud is what the recipe has, so that only the kind of the loss differs."""
    usual = find_recipe("dapr-m-paper-small").loss.settings
    for name in ("losses", "modules", "partition", "margin"):
        for system in find_study(name).systems:
            if system.recipe == "dapr-m-paper-small" and system.loss is not None:
                assert system.loss["scale"] == usual["scale"], (name, system.name)
                assert system.loss.get("margin", usual["margin"]) == usual["margin"]


def test_every_host_is_compared_with_itself_and_only_the_loss_differs() -> None:
    systems = {one.name: one for one in find_study("plug-in").systems}
    hosts = [name for name in systems if "LB" not in name]
    assert {"CosPlace", "SALAD", "BoQ"} <= set(hosts)
    for host in hosts:
        for plugged in (f"{host} + LB", f"{host} + LB up"):
            assert systems[plugged].against == host
            plain, biased = (systems[name].build_recipe((), 0) for name in (host, plugged))
            assert replace(biased, loss=plain.loss) == plain
            assert biased.loss.settings["kappa"] > 0
            kept = plain.loss.settings.items() & biased.loss.settings.items()
            assert kept == plain.loss.settings.items()


def test_what_cannot_be_studied_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="losses"):
        find_study("loses")
    with pytest.raises(SettingError, match="two systems called 'a'"):
        Study("x", "?", (System("a", "cosface"), System("a", "cosface")))
    with pytest.raises(SettingError, match="'b'"):
        Study("x", "?", (System("a", "cosface", against="b"),))
    with pytest.raises(PhotoError, match="no data 'nowhere'"):
        read_splits("nowhere", 1, tmp_path)
    with pytest.raises(SettingError, match="seeds=0"):
        read_splits("town", 0, tmp_path)


def test_the_verb_prints_the_tables(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["study", "distance", "--data", str(folder), "--seeds", "1", "--out", str(tmp_path)]
    words += [word for setting in TINY for word in ("--set", setting)]
    monkeypatch.setattr(sys, "argv", ["evenplace", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    said = capsys.readouterr().out
    assert "| CFD − L2 |" in said
    assert "93.5" in said  # the paper's own
    assert (tmp_path / f"distance-{folder.name}" / "tables.md").exists()
    assert len(list((tmp_path / "runs").iterdir())) == 2  # eight ways to rank, two trainings


@pytest.mark.parametrize("name", ["choices", "descriptors"])
def test_a_study_that_chooses_never_asks_the_test(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["evenplace", "study", name, "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "add --development" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_figures_come_with_what_they_show(found: Findings, tmp_path: Path) -> None:
    write_findings(found, tmp_path)
    for drawing in (tmp_path / "figures").glob("*.svg"):
        rows = drawing.with_suffix(".csv").read_text().splitlines()
        assert rows[0] == "panel,series,x,y"
        if "areas" not in drawing.name and "lines" not in drawing.name:  # here they are empty
            assert len(rows) > 1, drawing.name
    bars = (tmp_path / "figures" / f"{found.study.name}-tiers.csv").read_text().splitlines()
    drawn = [
        float(row.split(",")[3]) for row in bars if f",{found.outcomes[0].system.name}," in row
    ]
    joint = found.outcomes[0].joint
    groups = ("overall", "head", "middle", "tail")
    assert drawn == pytest.approx([np.nan_to_num(joint.tier(one).recall[1]) for one in groups])


def test_places_as_large_as_each_other_have_no_bins(found: Findings) -> None:
    scores = found.outcomes[0].parts[0]
    areas = np.full(len(scores.places), 400.0)
    even = replace(scores, places=replace(scores.places, areas=areas))
    assert not any(part.queries for part in recall_by_area(even))
    apart = replace(scores, places=replace(scores.places, areas=areas + np.arange(len(areas))))
    assert any(part.queries for part in recall_by_area(apart))


def test_what_a_pipeline_reads_is_the_paper_s_arithmetic(found: Findings) -> None:
    rows = [row.split(" | ") for row in pipeline_table({"": found}).splitlines() if " | " in row]
    for row, one in zip(rows[2:], found.outcomes, strict=True):
        cost = one.joint.cost
        assert float(row[7].replace(",", "")) == round(cost.pool_size * cost.dim * 4 / 1e3) > 0
    assert read_bytes(450, 768) == 1_382_400
    assert read_bytes(2_800_000, 8448) == 94_617_600_000


def test_the_paper_s_page_has_every_table_in_its_order(found: Findings, tmp_path: Path) -> None:
    """The tiny study stands in for all of the paper's, its systems for theirs."""
    numbers = [item.number for item in ITEMS]
    assert numbers[:6] == ["Figure 1", "Figure 2", "Table 1", "Table 2", "Figure 4", "Figure 5"]
    assert set(ORDER) <= set(STUDIES)
    for item in ITEMS:
        assert set(item.systems) <= {one.name for one in find_study(item.study).systems}
        assert set(item.tables) <= set(TABLES)
        assert set(item.figures) <= set(FIGURES)
    assert set(CAPTIONS) == set(FIGURES)
    plugged = next(one for one in paper_studies() if one.name == "plug-in")
    names = [one.name for one in plugged.systems]
    assert {"BoQ", "BoQ + LB", "ImAge + LB"} <= set(names)
    assert "BoQ + LB up" not in names  # what the page does not show is not trained for it
    posed = [replace(found, study=replace(found.study, name=name)) for name in ORDER]
    items = tuple(replace(item, systems=()) for item in ITEMS)
    made = write_paper(posed, tmp_path, "evenplace study <paper>", items=items).read_text("utf-8")
    headings = re.findall(r"<h2>(.*?)</h2>", made)
    assert [one.partition(":")[0] for one in headings] == [*numbers, "What it took"]
    assert "evenplace study &lt;paper&gt;" in made
    drawn = sum(len(item.figures) for item in ITEMS)
    for kind in ("svg", "png", "csv"):
        assert len(list((tmp_path / "figures").glob(f"*.{kind}"))) == drawn
    assert markdown_html("a <b>\n\n| x | y |\n|---|---|\n| 1 | <i> |").count("&lt;") == 2
    assert markdown_html("## A\n\n### b\n\n`<i>` is") == (
        "<h3>A</h3><h4>b</h4><p><code>&lt;i&gt;</code> is</p>"
    )


def test_words_under_bars_do_not_run_into_each_other(found: Findings) -> None:
    """Where each system has tiers of its own there is more to say below them."""
    one = found.outcomes[0].joint
    other = replace(one, name="other", head=one.middle, middle=one.head)
    figure = tier_bars([one, other])
    figure.savefig(io.BytesIO())
    axes = figure.axes[0]
    assert "own places" in axes.get_xlabel()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_a_setting_that_changes_little_is_drawn_as_little(found: Findings) -> None:
    at = [replace(one, system=replace(one.system, at=("alpha", float(number))))
          for number, one in enumerate(found.outcomes[:2])]  # fmt: skip
    low, high = draw_lines(replace(found, outcomes=tuple(at))).axes[0].get_ylim()
    assert 10 <= high - low <= 100


def test_every_tier_and_light_is_counted_in_its_column(found: Findings) -> None:
    """The tail of the queries, and R@1 by day and night, counted by hand."""
    one = found.of("L2")
    part = one.parts[0]
    ranked = sorted(range(len(part.predictions)),
                    key=lambda query: -part.predictions.photographed[query])  # fmt: skip
    tail = ranked[len(ranked) - int(0.3 * len(ranked)) :]
    within = [0 <= part.predictions.first_right[query] < 5 for query in tail]
    (of_five,) = query_columns(("tail",), (5,)).values()
    assert of_five(part) == pytest.approx(100 * np.mean(within))
    lit = {"light": {"day": part.head, "night": part.tail}}
    dark = replace(one, parts=tuple(replace(each, conditions=lit) for each in one.parts))
    text = pipeline_table({"": replace(found, outcomes=(dark,))})
    many = len(found.splits) * part.head.queries, len(found.splits) * part.tail.queries
    assert f"| R@1 of {many[0]} by day | R@1 of {many[1]} by night |" in text


@pytest.mark.parametrize(("sets", "shown"), [((), True), (("paper, MSLS",), False)])
def test_a_table_stands_beside_the_paper_s_numbers_of_its_own_sets(
    found: Findings, tmp_path: Path, sets: tuple[str, ...], shown: bool
) -> None:
    item = Item("Table 9", "Any", found.study.name, ("beside",), sets=sets)
    text = write_paper([found], tmp_path, "evenplace", items=(item,)).read_text("utf-8")
    assert ("<td>75.8</td>" in text) is shown
    part = found.of("L2").parts
    for rank in (1, 5, 10):
        assert f"<td>{spread([one.recall[rank] for one in part])}</td>" in text


def test_findings_of_some_systems_are_compared_among_themselves(found: Findings) -> None:
    some = found.only(("CFD", "fused"))
    assert [one.system.name for one in some.outcomes] == ["CFD", "fused"]
    assert "fused − CFD" in gain_table(some)
    assert "fused − L2" in gain_table(found)
    assert minutes(found.folders) > minutes(some.only(("CFD",)).folders) > 0


def test_every_system_is_asked_in_a_way_that_the_engine_knows() -> None:
    known = {*inspect.signature(Search).parameters, "verify", "features"}
    assert set(ENGINE) <= known
    for name in STUDIES:
        for system in find_study(name).systems:
            assert set(engine_settings(system.search)) <= known, (name, system.name)
            rules = () if "rerank" in system.search else set(system.search) - set(ENGINE)
            assert not rules, f"{name}: {system.name} has settings of no rule: {rules}"


def test_another_day_is_asked_together_and_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["study", "another-day", "--data", str(folder), "--seeds", "1", "--out", str(tmp_path)]
    words += ["--system", "one look, alone", "--queries", "24"]
    words += ["--set", "image_size=64", "--set", "dim=16", "--set", "folds=0", "--set", "epochs=1"]
    monkeypatch.setattr(sys, "argv", ["evenplace", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    (page,) = tmp_path.glob("another-day-*/tables.md")
    assert "| one look, together − one look, alone |" in page.read_text()


@pytest.mark.long
def test_every_part_of_the_layer_is_a_switch_that_changes_the_answers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["study", "layer", "--data", str(folder), "--seeds", "1", "--out", str(tmp_path)]
    words += ["--system", "VLAD, frozen + tail layer", "--queries", "12"]
    words += ["--set", "image_size=64", "--set", "dim=16"]
    monkeypatch.setattr(sys, "argv", ["evenplace", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    study = find_study("layer").only(["VLAD, frozen + tail layer"])
    splits = read_splits(str(folder), 1, tmp_path / "data", queries=12)
    known = run_study(study, splits, tmp_path, settings=["image_size=64", "dim=16"])
    found = {
        one.system.name: one.joint.predictions.hit_distances.tolist() for one in known.outcomes
    }
    whole, chosen = (
        "VLAD, frozen + tail layer",
        {"prototypes as folds choose", "axes as folds choose"},
    )
    same = {name for name in found if found[name] == found[whole]}
    assert same <= {whole, *chosen}
    assert len(found) == 11  # the layer, and a row a switch
