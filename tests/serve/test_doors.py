"""Who is let in: names, origins, tokens, and what every response says to the browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from evenplace.errors import SettingError
from evenplace.serve import guard
from evenplace.serve.guard import COOKIE, session_cookie
from evenplace.serve.settings import Settings, read_token
from tests.serve.conftest import Town, serving
from tests.serve.test_api import ask, problem_of

TOKEN = "a-token-of-some-length"
EVIL = {"origin": "http://evil.example"}


def test_another_name_for_this_machine_is_refused(client: TestClient) -> None:
    wrong = ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]", "[bad")
    for host in (*wrong, "evil@127.0.0.1", "evil:x@localhost", "127.0.0.1/evil", "127.0.0.1#e"):
        said = client.get("/about", headers={"host": host})
        assert problem_of(said).type.endswith("host-refused"), host
    for host in ("localhost", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:1", "localhost."):
        assert client.get("/about", headers={"host": host}).status_code == 200, host


def test_a_name_can_be_allowed(town: Town) -> None:
    with serving(town.run, hosts=("places.example",)) as client:
        assert client.get("/about", headers={"host": "places.example"}).status_code == 200
        assert client.get("/about", headers={"host": "other.example"}).status_code == 421


def test_other_sites_pages_may_neither_send_nor_embed(client: TestClient, town: Town) -> None:
    files = [("photo", town.photo())]
    assert problem_of(client.post("/locate", files=files, headers=EVIL)).status == 403
    null = client.post("/locate", files=files, headers={"origin": "null"})
    assert problem_of(null).type.endswith("origin-refused")
    for site in ("cross-site", "same-site"):
        said = client.get("/about", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"})
        assert problem_of(said).status == 403
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=visit).status_code == 200
    own = client.post("/locate", files=files, headers={"origin": "http://127.0.0.1"})
    assert own.status_code == 200


def test_an_origin_of_another_scheme_is_another_site(client: TestClient, town: Town) -> None:
    for scheme in ("https", "ftp", "chrome-extension", "file"):
        said = client.get("/about", headers={"origin": f"{scheme}://127.0.0.1"})
        assert problem_of(said).type.endswith("origin-refused"), scheme
    with serving(town.run, hosts=("places.example",)) as proxied:
        for scheme, status in (("https", 200), ("http", 200), ("ftp", 403)):
            headers = {"host": "places.example", "origin": f"{scheme}://places.example"}
            assert proxied.get("/about", headers=headers).status_code == status, scheme


def test_there_is_no_cors(client: TestClient) -> None:
    asked = EVIL | {"access-control-request-method": "POST"}
    said = client.options("/locate", headers=asked)
    assert said.status_code == 403
    assert not [name for name in said.headers if name.startswith("access-control")]


def test_every_response_carries_the_security_headers(client: TestClient, town: Town) -> None:
    said = [client.get(path) for path in ("/", "/docs", "/about", "/nothing", "/assets/app.js")]
    said += [client.get("/about", headers={"host": "evil.example"}), ask(client, b"no photo")]
    for one in said:
        policy = one.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy, "no other machine"
        assert "frame-ancestors 'none'" in policy
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in one.headers


def test_tiles_are_allowed_only_from_where_they_were_configured(town: Town) -> None:
    with serving(town.run, tiles="https://tiles.example/{z}/{x}/{y}.png") as client:
        policy = client.get("/").headers["content-security-policy"]
        assert "img-src 'self' blob: data: https://tiles.example;" in policy
        assert client.get("/about").json()["tiles"].startswith("https://tiles.example")


def test_tiles_need_a_globe(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    from evenplace.serve import service

    service._check_tiles(Settings(town.run), 0)
    with pytest.raises(SettingError, match="UTM zone"):
        service._check_tiles(Settings(town.run, tiles="http://t.example/{z}/{x}/{y}.png"), 0)


def test_a_public_address_needs_a_token(town: Town) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "places.example"):
        with pytest.raises(SettingError, match="token"):
            Settings(town.run, host=host)
        Settings(town.run, host=host, token=TOKEN)
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        Settings(town.run, host=host)


def test_a_token_is_long_and_never_shown(town: Town) -> None:
    with pytest.raises(SettingError, match="characters"):
        Settings(town.run, token="short")
    assert TOKEN not in repr(Settings(town.run, token=TOKEN))


def test_the_token_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENPLACE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    (tmp_path / "token").write_text("another-long-token\n")
    assert read_token(tmp_path / "token") == "another-long-token"
    (tmp_path / "token").write_text("\n")
    with pytest.raises(SettingError, match="no token"):
        read_token(tmp_path / "token")


def test_without_the_token_there_is_only_the_empty_page(town: Town) -> None:
    with serving(town.run, token=TOKEN) as client:
        for path in ("/", "/health", "/assets/app.js", "/docs"):
            assert client.get(path).status_code == 200
        for path in (
            "/about", "/map", "/places", "/places/0", "/photos/00000000-0", "/metrics", "/ready",
        ):  # fmt: skip
            said = client.get(path)
            assert problem_of(said).status == 401, path
            assert said.headers["www-authenticate"] == "Bearer"
        for path in ("/assets/%2e%2e/about", "/assets/..%2fabout", "/about/", "/ABOUT"):
            assert client.get(path, follow_redirects=False).status_code in (401, 404), path
        assert ask(client, town.photo()).status_code == 401
        for wrong in (TOKEN[:-1], TOKEN + "x", "", "ü" * 22, TOKEN.upper()):
            headers = {b"authorization": f"Bearer {wrong}".encode()}
            assert client.get("/about", headers=headers).status_code == 401
        right = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/about", headers=right).status_code == 200


def test_the_page_signs_in_with_a_cookie_that_is_not_the_token(town: Town) -> None:
    with serving(town.run, token=TOKEN) as client:
        assert client.post("/session", json={"token": "wrong"}).status_code == 401
        said = client.post("/session", json={"token": TOKEN})
        cookie = said.headers["set-cookie"]
        assert TOKEN not in cookie
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert client.get("/about").status_code == 200
    with serving(town.run, token=TOKEN) as fresh:
        bad = fresh.get("/about", headers={"cookie": f"{COOKIE}={'0' * 64}"})
        assert bad.status_code == 401
        other = f"{COOKIE}={session_cookie('another-token-altogether')}"
        assert fresh.get("/about", headers={"cookie": other}).status_code == 401


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def compare(a: bytes, b: bytes) -> bool:
        seen.append((a, b))
        return a == b

    monkeypatch.setattr("hmac.compare_digest", compare)
    assert guard.same("x", "x")
    assert not guard.same("x", "y")
    assert seen == [(b"x", b"x"), (b"x", b"y")]


def test_a_proxy_s_word_makes_the_cookie_stricter(town: Town) -> None:
    with serving(town.run, token=TOKEN) as client:
        plain = client.post("/session", json={"token": TOKEN}).headers["set-cookie"]
        proxied = {"x-forwarded-proto": "https"}
        said = client.post("/session", json={"token": TOKEN}, headers=proxied)
    assert "Secure" not in plain
    assert "Secure" in said.headers["set-cookie"]


def test_signing_in_reads_little_of_what_a_stranger_sends(town: Town) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1
            yield bytes(1000)

    with serving(town.run, token=TOKEN) as client:
        assert problem_of(client.post("/session", content=endless())).status == 413
        for body in (b"", b"{", b"[]", b"{}", b"7", b"[" * 4000, b'{"token": '):
            assert problem_of(client.post("/session", content=body)).status == 400, body
        for token in (None, 7, ["x"], {"a": 1}, "x" * 3000):
            assert client.post("/session", json={"token": token}).status_code == 401


def test_methods_a_stranger_invents_are_counted_as_one(town: Town) -> None:
    with serving(town.run) as client:
        for number in range(20):
            assert problem_of(client.request(f"INVENT{number}", "/about")).status == 405
        text = client.get("/metrics").text
    assert "INVENT" not in text
    assert 'evenplace_requests_total{method="other",route="/about",status="405"} 20.0' in text


@pytest.mark.parametrize(
    ("tiles", "origin"),
    [
        ("https://tiles.example/{z}/{x}/{y}.png", "https://tiles.example"),
        ("http://127.0.0.1:8080/{z}/{x}/{y}.png?key=a", "http://127.0.0.1:8080"),
        ("https://{s}.tiles.example/a/{z}/{y}/{x}", "https://*.tiles.example"),
        ("/tiles/{z}/{x}/{y}.png", ""),
    ],
)
def test_tiles_have_one_origin(town: Town, tiles: str, origin: str) -> None:
    assert Settings(town.run, tiles=tiles).tile_origin == origin


@pytest.mark.parametrize(
    "tiles",
    [
        "nonsense", "https://tiles.example/{z}", "javascript:{z}{x}{y}", "data:,/{z}/{x}/{y}",
        "https://user:password@tiles.example/{z}/{x}/{y}", "ftp://tiles.example/{z}/{x}/{y}",
        "https://tiles.example; script-src *; /{z}/{x}/{y}", "https://a b/{z}/{x}/{y}",
        "https://tiles.example/{z}/{x}/{y};script-src *",
    ],
)  # fmt: skip
def test_tiles_that_would_bend_the_policy_are_refused(town: Town, tiles: str) -> None:
    with pytest.raises(SettingError, match="names no tiles"):
        Settings(town.run, tiles=tiles)
