"""The page for everybody: keys, screen readers, phones, tokens, tiles, a service that is gone."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from evenplace.serve.app import create_app
from evenplace.serve.settings import Settings
from tests.serve.conftest import Town, jpeg, listening
from tests.serve.visits import IN_A_BROWSER, PHONE, Visit, answered, drop

pytestmark = IN_A_BROWSER
TOKEN = "a-token-of-some-length"


def test_tabs_obey_the_arrow_keys(visit: Visit) -> None:
    page = visit.ready()
    page.locator("#tab-find").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-browse"
    assert page.locator("#browse").is_visible()
    assert page.locator("#tab-find").get_attribute("tabindex") == "-1"
    page.keyboard.press("ArrowRight")
    assert page.locator("#many").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator("#find").is_visible()
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.id") == "tab-many"
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.id") == "tab-find"


def test_every_control_has_a_name(visit: Visit, town: Town) -> None:
    page = visit.ready()
    drop(page, town.photo())
    answered(page)
    page.get_by_role("tab", name="The database").click()
    page.wait_for_selector("#list button")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, select, input:not([hidden]), img')]
        .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.title
          || e.hasAttribute('alt') || (e.labels && e.labels.length)))
        .map((e) => e.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(
    browser: Any, address: str, town: Town, scheme: str
) -> None:
    opened = Visit(browser, address, color_scheme=scheme, **PHONE)
    page = opened.ready()
    drop(page, town.photo())
    answered(page)
    wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
    for chosen in ("#choose", "#camera", "#tab-browse"):
        assert page.locator(chosen).bounding_box()["height"] >= 40, "a finger's height"
    page.get_by_role("tab", name="The database").click()
    page.wait_for_selector("#list button")
    assert page.evaluate(wide) <= 0
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(18, 21, 27)") == (scheme == "dark")
    assert opened.complaints == []
    opened.close()


def test_the_page_asks_for_the_token_once(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run, token=TOKEN))) as address:
        opened = Visit(browser, address)
        page = opened.page
        page.wait_for_selector("#signin[open]")
        page.fill("#token", "not the token at all")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_function("() => document.getElementById('signin-error').textContent")
        page.fill("#token", TOKEN)
        page.get_by_role("button", name="Sign in").click()
        opened.ready()
        drop(page, town.photo())
        answered(page)
        page.wait_for_function("() => document.querySelectorAll('#hits img')[1].naturalWidth > 0")
        assert page.evaluate("document.cookie") == "", "scripts cannot read it"
        opened.close()


def test_a_service_that_stopped_is_said_to_have(browser: Any, town: Town) -> None:
    with listening(create_app(Settings(town.run))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
    drop(page, town.photo())
    page.wait_for_selector("#verdict.failed")
    assert "does not answer" in page.inner_text("#verdict")
    opened.close()


def test_what_is_shown_is_said_too(browser: Any, town: Town) -> None:
    """The status line is in the page from the start, or a screen reader would not follow it."""
    with listening(create_app(Settings(town.run, min_precision=0.97))) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        assert page.locator("#said[role=status]").count() == 1
        drop(page, town.photo())
        answered(page)
        said = page.locator("#said[role=status]").text_content()
        assert said.startswith("No answer")
        assert "What would help:" in said
        assert "times in" in said
        opened.close()


def test_the_keys_alone_do_it_all(visit: Visit, town: Town) -> None:
    page = visit.ready()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    with page.expect_file_chooser() as chooser:
        page.locator("#choose").press("Enter")
    chooser.value.set_files(str(town.queries[0]))
    answered(page)
    page.locator("#tab-find").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#list button")
    page.locator("#list button").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#shots button")
    page.locator("#shots button").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#find:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "tab-find", "the focus is not lost"


def test_a_phone_takes_the_photo_with_its_own_camera(
    browser: Any, address: str, town: Town
) -> None:
    opened = Visit(browser, address, **PHONE)
    page = opened.ready()
    assert "Drop" not in page.locator("#drop").inner_text(), "nobody drops files on a phone"
    assert page.locator("#shot").get_attribute("capture") == "environment"
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Use the camera").tap()
    assert chooser.value.element.get_attribute("id") == "shot"
    chooser.value.set_files(str(town.queries[0]))
    answered(page)
    opened.close()


@contextmanager
def tile_server() -> Iterator[tuple[str, list[str]]]:
    """Tiles from another port, which is another origin; gives its address and what was asked."""
    asked: list[str] = []

    class Tiles(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "image/jpeg")
            # Ours is asked for nothing but pictures, and says who may show them.
            self.send_header("cross-origin-resource-policy", "cross-origin")
            self.end_headers()
            self.wfile.write(jpeg(256, 256))

        def log_message(self, *words: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_tiles_lie_under_the_cells(browser: Any, town: Town) -> None:
    with tile_server() as (tiles, asked):
        settings = Settings(
            town.run, tiles=f"{tiles}/{{z}}/{{x}}/{{y}}.jpg", tiles_credit="<b>drawn by hand</b>"
        )
        with listening(create_app(settings)) as address:
            opened = Visit(browser, address)
            page = opened.ready()
            drop(page, town.photo())
            answered(page)
            page.wait_for_selector("#map img.leaflet-tile-loaded")
            assert page.locator("#map .pin").count() == 5
            inside = page.evaluate(
                """() => {
                  const map = document.getElementById("map").getBoundingClientRect();
                  const here = document.querySelector(".here b").getBoundingClientRect();
                  return here.left > map.left && here.right < map.right
                    && here.top > map.top && here.bottom < map.bottom;
                }"""
            )
            assert inside, "degrees put the answer where metres did"
            assert page.locator("#map .credit").inner_text() == "<b>drawn by hand</b>"
            assert tiles in page.locator("footer").inner_text()
            assert asked
            assert all(url.startswith(tiles) for url in opened.strangers)
            assert opened.complaints == []
            blocked = page.evaluate(
                """async () => {
                  const image = new Image();
                  const told = new Promise((done) => {
                    image.onload = () => done("loaded");
                    image.onerror = () => done("blocked");
                  });
                  image.src = "http://localhost:9/other.png";
                  return told;
                }"""
            )
            assert blocked == "blocked"
            assert any("Content Security Policy" in text for text in opened.complaints)
            opened.close()


def test_the_page_works_without_the_tiles_it_was_promised(browser: Any, town: Town) -> None:
    settings = Settings(town.run, tiles="http://127.0.0.1:9/{z}/{x}/{y}.png")
    with listening(create_app(settings)) as address:
        opened = Visit(browser, address)
        page = opened.ready()
        drop(page, town.photo())
        answered(page)
        assert page.locator("#map .here").count() == 1
        assert page.locator("#map canvas").count() > 0, "the cells"
        opened.close()
