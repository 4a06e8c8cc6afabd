"""Recipes: what is written is what is read, and nothing unknown slips in."""

from pathlib import Path

import pytest

from evenplace.errors import SettingError
from evenplace.training.recipe import Recipe, find_recipe, read_recipe, recipe_names


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_survives_the_round_trip(name: str, tmp_path: Path) -> None:
    recipe = read_recipe(name)
    (tmp_path / "again.toml").write_text(recipe.to_toml())
    assert read_recipe(tmp_path / "again.toml") == recipe
    assert recipe.name == name


def test_settings_find_their_table() -> None:
    changed = Recipe().changed(["epochs=3", "search.rerank=kde", "cell=12.5", "loss.margin=0.1"])
    assert changed.training.epochs == 3
    assert changed.search.rerank == "kde"
    assert changed.places.cell == 12.5
    assert changed.loss.settings == {"margin": 0.1}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("epoch=3", "did you mean 'epochs'"),
        ("epochs", "key=value"),
        ("epochs=many", "must be a whole number"),
        ("sampler=places", "did you mean 'place'"),
        ("epochs=-1", "at least 0"),
        ("cached=1", "true or false"),
        ("epochs=2.5", "whole number"),
        ("seed=1.5", "whole number"),
        ("seed=-1", "at least 0"),
        ("lr=nan", "finite number"),
        ("lr=inf", "finite number"),
        ("dim=99999999", "at most 131072"),
        ("cell=0", "at least 0.01"),
        ('milestones=[1, "two"]', "a list, each a finite number"),
        ("loss.scale=nan", "finite number"),
        ("backbone=3", "text"),
    ],
)
def test_a_bad_setting_says_what_would_do(setting: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Recipe().changed([setting])


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[training]\nepoch = 3\n")
    with pytest.raises(SettingError, match="did you mean 'epochs'"):
        read_recipe(tmp_path / "bad.toml")


def test_a_file_that_is_no_toml_says_which_line(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("epochs == 3\n")
    with pytest.raises(SettingError, match="not TOML"):
        read_recipe(tmp_path / "bad.toml")


def test_unknown_recipes_list_the_known_ones() -> None:
    with pytest.raises(SettingError, match="did you mean 'dapr-m'"):
        read_recipe("daprm")


def test_presets_choose_between_the_paper_and_what_holds_up() -> None:
    assert find_recipe("dapr-m", "paper").loss.settings["beta"] == 0.01
    assert find_recipe("dapr-m").loss.settings["kappa"] == 0.5
    assert find_recipe("cosface", "paper") == find_recipe("cosface")
    with pytest.raises(SettingError, match="recommended"):
        find_recipe("dapr-m", "recomended")


def test_correcting_twice_is_cautioned_against() -> None:
    recipe = find_recipe("dapr-m")
    assert recipe.cautions() == []
    (caution,) = recipe.changed(["sampler=place"]).cautions()
    assert "again (beta, kappa)" in caution
    assert find_recipe("cross-entropy").changed(["sampler=place"]).cautions() == []


def test_text_of_any_plane_survives_the_round_trip(tmp_path: Path) -> None:
    recipe = Recipe().changed(['name="Straße 🏘 \\u0007 \\"so\\""'])
    (tmp_path / "again.toml").write_text(recipe.to_toml(), encoding="utf-8")
    assert read_recipe(tmp_path / "again.toml") == recipe
    assert "🏘" in recipe.name


@pytest.mark.parametrize("text", ["training = 3\n", "[training]\nlr = nan\n"])
def test_a_file_is_held_to_the_same_kinds(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(SettingError, match=r"training.* must be a"):
        read_recipe(tmp_path / "bad.toml")


def test_a_file_of_other_bytes_is_no_recipe(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"name = \xff\xfe")
    with pytest.raises(SettingError, match="not TOML"):
        read_recipe(tmp_path / "bad.toml")
