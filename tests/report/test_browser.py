"""The page in a real browser with the network cut: click the map, switch tier, see it follow."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenplace.report.evaluation import write_report
from tests.report.drawn import evaluated

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]
FIRST_CELL_WITH_PHOTOS = """
() => {
  const element = document.querySelector('.ep-map'), map = element.map;
  const data = JSON.parse(element.querySelector('script').textContent);
  const bytes = Uint8Array.from(atob(data.corners), (c) => c.charCodeAt(0));
  const corners = new Float32Array(bytes.buffer);
  for (const cell of Object.keys(data.pictures).map(Number)) {
    const own = corners.slice(8 * cell, 8 * cell + 8);
    const x = (own[0] + own[2] + own[4] + own[6]) / 4, y = (own[1] + own[3] + own[5] + own[7]) / 4;
    for (const [dx, dy] of [[0, 0], [7, 7], [-7, 7], [7, -7], [-7, -7]]) {
      map.setView([y + dy, x + dx], 3, { animate: false });
      const points = Uint8Array.from(atob(data.points.at), (c) => c.charCodeAt(0));
      const at = new Float32Array(points.buffer);
      let near = Infinity;
      for (let i = 0; i < at.length / 2; i++)
        near = Math.min(near, Math.hypot(at[2 * i] - x - dx, at[2 * i + 1] - y - dy));
      if (near > 3) {
        const spot = map.latLngToContainerPoint([y + dy, x + dx]);
        return { x: spot.x, y: spot.y, photos: data.facts.photos[cell] };
      }
    }
  }
}
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    systems, runs = evaluated(folder)
    return write_report(systems, folder / "report", runs=runs)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The report opened from disk; any request that leaves the disk fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    opened = context.new_page()
    asked: list[str] = []
    trouble: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("console", lambda line: trouble.extend([line.text] * (line.type == "error")))
    opened.goto(report.as_uri())
    opened.wait_for_selector(".leaflet-container")
    yield opened
    assert trouble == []
    outside = [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    context.close()


def shown(page: Any) -> list[str]:
    """The tiers of the queries that can be seen in the gallery."""
    tiers: list[str] = page.eval_on_selector_all(
        ".asked", "all => all.filter(b => b.offsetParent).map(b => b.dataset.tier)"
    )
    return tiers


def test_a_click_on_a_place_shows_its_photos(page: Any) -> None:
    page.locator(".ep-map").scroll_into_view_if_needed()
    spot = page.evaluate(FIRST_CELL_WITH_PHOTOS)
    page.locator(".ep-map .view").click(position={"x": spot["x"], "y": spot["y"]})
    popup = page.locator(".leaflet-popup-content")
    popup.wait_for()
    assert f"photos {spot['photos']}" in popup.inner_text()
    picture = popup.locator("img").first
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") > 0


def test_the_gallery_and_the_map_follow_the_tier(page: Any) -> None:
    page.locator(".kinds.switch button", has_text="failed").click()
    assert len(set(shown(page))) > 1
    for tier in ("tail", "head", "all"):
        page.locator(f'.tiers.switch button[data-tier="{tier}"]').first.click()
        seen = shown(page)
        assert seen
        assert tier == "all" or set(seen) == {tier}
        pressed = page.eval_on_selector_all(
            f'.tiers.switch button[data-tier="{tier}"]', "all => all.map(b => b.ariaPressed)"
        )
        assert pressed == ["true", "true"]  # the switch above the map and the gallery's
        keys = page.eval_on_selector_all(
            ".ep-map .keys button",
            "all => all.map(b => [b.textContent.split(' ')[0], b.ariaPressed])",
        )
        for name, on in keys:
            assert (on == "true") == (tier in ("all", name))


def test_the_kinds_of_queries_can_be_chosen(page: Any) -> None:
    for kind in ("rescued", "failed"):
        page.locator(f'.kinds.switch button[data-kind="{kind}"]').click()
        kinds = page.eval_on_selector_all(
            ".asked", "all => all.filter(b => b.offsetParent).map(b => b.dataset.kind)"
        )
        assert set(kinds) == {kind}


def test_a_phone_shows_all_of_it(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("h2", has_text="Queries and answers").is_visible()
    tall = page.eval_on_selector_all("tbody tr", "all => Math.max(...all.map(r => r.offsetHeight))")
    assert tall < 120, "words are not pressed into a column of one each"


def test_a_desk_shows_every_column(page: Any) -> None:
    page.set_viewport_size({"width": 1000, "height": 800})
    widths = page.eval_on_selector_all(
        "table", "all => all.map(t => [t.scrollWidth, t.parentElement.clientWidth])"
    )
    assert widths
    assert all(table <= box for table, box in widths), widths


def test_the_dark_is_dark(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in colour.strip("rgb()").split(",")) < 60


def test_a_base_map_is_asked_for_where_the_places_are(
    browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Only when the user gives an address; tiles cover the place the photos were taken at."""
    from evenplace.photos.geodesy import to_degrees
    from tests.drawn import EAST, NORTH, ZONE

    folder = tmp_path_factory.mktemp("tiles")
    systems, _ = evaluated(folder, 40, 12)
    url = "https://tiles.example/{z}/{x}/{y}.png"
    written = write_report(systems, folder / "report", tiles=url)
    asked: list[str] = []
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_request(lambda request: request.url.startswith("https://tiles.")):
        page.goto(written.as_uri())
    page.wait_for_timeout(500)
    page.close()
    latitude, longitude = (float(v[0]) for v in to_degrees([EAST + 100], [NORTH + 100], ZONE))
    columns = {url.split("/", 3)[3] for url in asked if url.startswith("https://tiles.")}
    zoom = int(next(iter(columns)).split("/")[0])
    x = (longitude + 180) / 360 * 2**zoom
    y = (1 - math.asinh(math.tan(math.radians(latitude))) / math.pi) / 2 * 2**zoom
    assert f"{zoom}/{int(x)}/{int(y)}.png" in columns


def test_an_address_without_its_parts_is_refused() -> None:
    from evenplace.errors import SettingError
    from evenplace.report.map import Tiles

    with pytest.raises(SettingError, match=r"must hold \{z\}"):
        Tiles("https://tiles.example", 34)
    with pytest.raises(SettingError, match="local metres"):
        Tiles("https://tiles.example/{z}/{x}/{y}", 0)
