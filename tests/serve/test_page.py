"""The page in a real browser: bring a photo, read the answer, browse the database."""

import json
import re
from typing import Any

import pytest

from evenplace.serve.app import create_app
from evenplace.serve.settings import Settings
from tests.serve.conftest import Town, listening
from tests.serve.visits import IN_A_BROWSER, Visit, answered, drop, paste

pytestmark = IN_A_BROWSER


def test_drop_a_photo_and_read_the_answer(visit: Visit, town: Town) -> None:
    page = visit.ready()
    drop(page, town.photo())
    answered(page)
    assert page.inner_text("#verdict h2") in ("Here", "Probably here", "Only a guess")
    assert "times in\xa0100" in page.inner_text("#verdict")
    assert page.locator("#verdict [role=meter]").get_attribute("aria-valuenow")
    assert page.locator("#hits li").count() == 6, "the photo and five like it"
    facts = page.locator("#hits li").nth(1).inner_text()
    assert 0 < float(facts.partition("similarity ")[2].split()[0]) <= 1
    assert page.locator("#map .pin").count() == 5
    assert page.locator("#map .here").count() == 1
    assert page.locator("#map path.ellipse").count() == 1
    assert page.locator("#places li").count() >= 3
    assert "describing it" in page.inner_text("#times")
    loaded = "() => [...document.querySelectorAll('#hits img')].every((i) => i.naturalWidth > 0)"
    page.locator("#hits li").last.scroll_into_view_if_needed()
    page.wait_for_function(loaded)


def test_an_uncertain_answer_looks_uncertain(visit: Visit, town: Town) -> None:
    page = visit.ready()
    for number in range(len(town.queries)):
        drop(page, town.photo(number))
        page.wait_for_selector("#verdict:not(.wait)")
        answered(page)
        if page.locator("#verdict.guess").count():
            break
    assert page.inner_text("#verdict h2") == "Only a guess"
    assert "It might also be" in page.inner_text("#verdict")
    dashes = page.eval_on_selector("path.ellipse", "e => getComputedStyle(e).strokeDasharray")
    assert dashes != "none"
    border = page.eval_on_selector("#verdict", "e => getComputedStyle(e).borderTopStyle")
    assert border == "dashed"


def test_a_photo_and_its_pin_point_at_each_other(visit: Visit, town: Town) -> None:
    page = visit.ready()
    drop(page, town.photo())
    answered(page)
    page.locator("#hits button").nth(2).hover()
    assert "lit" in page.locator("#map .pin").nth(2).get_attribute("class")
    page.locator("h1").hover()
    assert "lit" not in page.locator("#map .pin").nth(2).get_attribute("class")
    page.locator("#map .pin").nth(1).focus()
    assert "lit" in page.locator("#hits li").nth(2).get_attribute("class")
    page.locator("#hits button").nth(4).focus()
    assert "lit" in page.locator("#map .pin").nth(4).get_attribute("class")
    page.locator("h1").hover()
    page.locator("#map .pin").nth(3).hover()
    assert "lit" in page.locator("#hits li").nth(4).get_attribute("class")
    page.locator("h1").hover()
    assert "lit" not in page.locator("#hits li").nth(4).get_attribute("class")


def test_paste_a_photo(visit: Visit, town: Town) -> None:
    page = visit.ready()
    paste(page, town.photo(1))
    answered(page)
    assert page.locator("#query").is_visible()


def test_choose_a_photo(visit: Visit, town: Town) -> None:
    page = visit.ready()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a photo").click()
    chooser.value.set_files(str(town.queries[0]))
    answered(page)


def test_take_a_photo(browser: Any, address: str) -> None:
    opened = Visit(browser, address, permissions=["camera"])
    page = opened.ready()
    page.get_by_role("button", name="Use the camera").click()
    page.wait_for_function("() => document.getElementById('video').videoWidth > 0")
    page.get_by_role("button", name="Take the photo").click()
    answered(page)
    assert not page.locator("#viewfinder").is_visible()
    assert opened.complaints == []
    opened.close()


@pytest.mark.parametrize("kind", ["image/png", "text/plain"])
def test_what_is_no_photo_is_refused_with_a_remedy(
    browser: Any, address: str, town: Town, kind: str
) -> None:
    opened = Visit(browser, address)
    page = opened.ready()
    whole = page.locator("#map .leaflet-control-scale-line").inner_text()
    drop(page, town.photo())
    answered(page)
    drop(page, b"this is no photo", kind)
    page.wait_for_selector("#verdict.failed")
    assert "This file is no picture" in page.inner_text("#verdict")
    assert "What to do: Send a JPEG, PNG or WebP." in page.inner_text("#verdict")
    assert page.locator("#seen").is_hidden()
    assert page.locator("#map .pin").count() == 0
    page.wait_for_function(
        f"() => document.querySelector('#map .leaflet-control-scale-line').innerText == '{whole}'"
    )
    opened.close()


def test_abstain(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run, min_precision=0.97))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, town.photo())
        answered(page)
        assert page.inner_text("#verdict h2") == "No answer"
        assert "97 %" in page.inner_text("#verdict")
        assert "What would help:" in page.inner_text("#verdict")
        assert page.locator("#map .here").count() == 0
        assert page.locator("#map path.ellipse").count() == 0
        assert page.locator("#map .pin").count() == 5, "the candidates are shown"
        assert opened.complaints == []
        opened.close()


def test_an_answer_says_how_often_it_is_right_and_what_was_asked(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run, min_precision=0.2))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, town.photo())
        answered(page)
        said = page.inner_text("#verdict .confidence").replace("\xa0", " ")
        assert re.search(
            r"^Answers like this one are right \d+ times in 100, and 20 % right, each answer and "
            r"all together, takes [\d.]+ or more\.$",
            said,
            re.M,
        )
        opened.close()


def test_a_run_that_promises_nothing_says_so_on_the_page(browser: Any, own_town: Town) -> None:
    kept = own_town.run / "calibration.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"doubt": "it rained"}))
    with listening(create_app(Settings(own_town.run))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, own_town.photo())
        answered(page)
        assert page.inner_text("#verdict h2") in ("Probably here", "Only a guess")
        said = page.inner_text("#verdict .confidence")
        assert "uncalibrated, a score and no probability, as it rained." in said
        opened.close()


def test_a_confidence_that_is_no_share_fills_no_gauge(browser: Any, own_town: Town) -> None:
    (own_town.run / "calibration.json").unlink()
    recipe = own_town.run / "recipe.toml"
    recipe.write_text(re.sub("confidence = .*", 'confidence = "l2"', recipe.read_text()))
    with listening(create_app(Settings(own_town.run))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, own_town.photo())
        answered(page)
        assert page.inner_text("#verdict h2") == "Only a guess"
        assert re.match(
            r"Score -[\d.]+, uncalibrated, a score and no probability",
            page.inner_text("#verdict .confidence"),
        )
        assert not page.locator("#verdict .gauge").count()
        opened.close()


def test_a_photo_at_the_same_metres_of_another_zone_is_far_away(
    browser: Any, two_zones: Town
) -> None:
    with listening(create_app(Settings(two_zones.run))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, two_zones.photo())
        answered(page)
        away = re.findall(r"(\d[\d,]*) (k?m) away", page.inner_text("#hits"))
        assert {unit for _, unit in away} == {"m", "km"}
        for number, unit in away:
            assert (int(number.replace(",", "")) > 10_000) == (unit == "km")
        page.get_by_role("tab", name="The database").click()
        page.locator("#list button").first.click()
        page.wait_for_selector("#shots img")
        assert opened.complaints == []
        opened.close()


def test_switch_tab_and_browse_the_database(visit: Visit) -> None:
    page = visit.ready()
    page.get_by_role("tab", name="The database").click()
    assert page.locator("#find").is_hidden()
    page.wait_for_selector("#list button")
    assert "40" in page.inner_text("#tiles")
    page.locator("#list button").first.click()
    page.wait_for_selector("#shots img")
    assert "photo" in page.inner_text("#cell-caption")
    page.get_by_label("density").check()
    assert "1 photo" in page.inner_text("#atlas-legend")
    page.select_option("#tier", "tail")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#list .mark')].every((m) => m.matches('.tail'))"
    )
    page.locator("#shots button").first.click()
    answered(page)
    assert page.locator("#find").is_visible(), "asked with a photo of the database"


def test_a_cell_on_the_map_opens(visit: Visit) -> None:
    page = visit.ready()
    page.goto(page.url.rstrip("#") + "#browse")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector("#list button")
    page.wait_for_timeout(300)
    box = page.locator("#atlas").bounding_box()
    found = False
    for across in range(1, 12):
        page.mouse.click(box["x"] + box["width"] * across / 12, box["y"] + box["height"] / 2)
        page.wait_for_timeout(60)
        found = found or page.locator("#cell-title").inner_text().startswith("Place")
    assert found
