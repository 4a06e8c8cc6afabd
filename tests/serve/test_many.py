"""The tab for many photos, in a real browser: a folder in, a map that fills, a table out."""

import base64
import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.serve.conftest import Town
from tests.serve.visits import IN_A_BROWSER, PHONE, Visit

pytestmark = IN_A_BROWSER


def ended(page: Any, count: int) -> str:
    page.wait_for_selector(f"#many-list li:nth-child({count})")
    page.wait_for_selector("#many-stop", state="hidden")
    return str(page.inner_text("#many-said"))


def files(town: Town, folder: Path) -> list[str]:
    (folder / "broken.jpg").write_bytes(b"\xff\xd8 no picture")
    (folder / "notes.txt").write_text("a day out")
    return [*map(str, town.queries), str(folder / "broken.jpg"), str(folder / "notes.txt")]


def test_many_photos_fill_the_map_and_the_table(visit: Visit, town: Town, tmp_path: Path) -> None:
    page = visit.ready()
    page.click("#tab-many")
    page.set_input_files("#files", files(town, tmp_path))
    said = ended(page, 13)
    assert "13 of 13 photos looked at, 12 answered" in said
    assert "1 file passed over" in said
    assert page.locator("#many-map .spot").count() == 12
    with page.expect_download() as download:
        page.click("#save-csv")
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [row["status"] for row in rows].count("answered") == 12
    with page.expect_download() as download:
        page.click("#save-geojson")
    features = json.loads(download.value.path().read_text())["features"]
    wanted = {(float(row["longitude"]), float(row["latitude"])) for row in rows if row["latitude"]}
    assert {tuple(one["geometry"]["coordinates"]) for one in features if one["geometry"]} == wanted


def test_a_dot_shows_its_photo_by_mouse_and_by_keyboard(visit: Visit, town: Town) -> None:
    page = visit.ready()
    page.focus("#tab-find")
    page.keyboard.press("End")
    assert page.locator("#tab-many[aria-selected=true]").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "choose-many"
    page.set_input_files("#files", [str(one) for one in town.queries[:3]])
    ended(page, 3)
    page.locator("#many-map .spot").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#line-1.lit")
    page.reload()
    assert page.wait_for_selector("#many:not([hidden])"), "the tab is in the address"


def test_it_fits_a_phone(browser: Any, address: str, town: Town) -> None:
    visit = Visit(browser, address, **PHONE)
    page = visit.ready()
    page.tap("#tab-many")
    page.set_input_files("#files", [str(one) for one in town.queries[:4]])
    ended(page, 4)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert visit.complaints == []
    visit.close()


def test_several_dropped_photos_open_the_tab(visit: Visit, town: Town) -> None:
    page = visit.ready()
    page.evaluate(
        """(all) => {
          const transfer = new DataTransfer();
          const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
          all.forEach((text, n) =>
            transfer.items.add(new File([bytes(text)], `p${n}.jpg`, { type: "image/jpeg" })));
          const event = { bubbles: true, cancelable: true, dataTransfer: transfer };
          document.getElementById("drop").dispatchEvent(new DragEvent("drop", event));
        }""",
        [base64.b64encode(town.photo(number)).decode() for number in range(2)],
    )
    assert "2 of 2 photos looked at" in ended(page, 2)


@pytest.mark.parametrize("tab", ["#many", "#browse"])
def test_an_address_opens_its_tab(browser: Any, address: str, tab: str) -> None:
    visit = Visit(browser, f"{address}/{tab}")
    visit.ready().wait_for_selector(f"{tab}:not([hidden])")
    visit.close()
