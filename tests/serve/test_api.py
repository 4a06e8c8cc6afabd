"""What the API says, and that it is what the engine knows."""

import concurrent.futures
import io
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from evenplace.errors import SettingError
from evenplace.retrieval import Search
from evenplace.serve import schema
from evenplace.serve.problems import KINDS, Problem
from evenplace.serve.routes import EXAMPLES
from tests.serve.conftest import Town, serving


def ask(client: TestClient, *photos: bytes, k: int = 5) -> Any:
    return client.post(f"/locate?k={k}", files=[("photo", photo) for photo in photos])


def problem_of(response: Any) -> schema.ProblemBody:
    """The problem a response is; every one has a type and a remedy."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = schema.ProblemBody.model_validate(response.json())
    assert problem.status == response.status_code
    assert problem.type.removeprefix("urn:evenplace:") in KINDS
    assert problem.remedy
    return problem


def test_an_answer_over_http_is_the_engine_s(
    client: TestClient, town: Town, engine: Search
) -> None:
    for number in range(6):
        found = engine.answer(town.photo(number), 5)
        said = schema.Located.model_validate(ask(client, town.photo(number)).json()).answers[0]
        assert isinstance(said, schema.Answer)
        assert said.position is not None
        assert said.position.east == pytest.approx(found.position.east, abs=0.05)
        assert said.position.ellipse.major == pytest.approx(found.position.ellipse.major, abs=0.05)
        assert said.confidence == pytest.approx(found.confidence, abs=1e-3)
        assert [hit.place for hit in said.hits] == [hit.place for hit in found.hits]
        assert [guess.posterior for guess in said.places] == pytest.approx(
            [guess.posterior for guess in found.places], abs=1e-4
        )
        assert said.calibrated


def test_degrees_and_metres_are_of_one_spot(client: TestClient, town: Town) -> None:
    import utm

    spot = ask(client, town.photo()).json()["answers"][0]["position"]
    east, north, zone, _ = utm.from_latlon(spot["latitude"], spot["longitude"])
    assert (east, north) == pytest.approx((spot["east"], spot["north"]), abs=0.02)
    assert zone == spot["zone"]


def test_many_photos_are_answered_in_their_order(client: TestClient, town: Town) -> None:
    alone = [ask(client, town.photo(n)).json()["answers"][0]["position"] for n in range(4)]
    together = ask(client, *(town.photo(n) for n in range(4))).json()["answers"]
    for one, same in zip(alone, together, strict=True):
        assert same["position"]["east"] == pytest.approx(one["east"], abs=0.05)


def test_of_several_photos_only_the_unreadable_is_refused(client: TestClient, town: Town) -> None:
    said = ask(client, town.photo(), b"no photo", town.photo(1))
    assert said.status_code == 200
    assert [one["kind"] for one in said.json()["answers"]] == ["answer", "refused", "answer"]
    assert "photo 2" in said.json()["answers"][1]["problem"]["detail"]


def test_a_bare_body_is_a_photo_too(client: TestClient, town: Town) -> None:
    headers = {"content-type": "image/jpeg"}
    bare = client.post("/locate", content=town.photo(), headers=headers)
    form = ask(client, town.photo())
    assert bare.json()["answers"][0]["hits"] == form.json()["answers"][0]["hits"]


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "JPEG"])
def test_each_format_a_camera_writes_is_read(client: TestClient, town: Town, kind: str) -> None:
    data = io.BytesIO()
    Image.open(io.BytesIO(town.photo())).save(data, kind)
    assert ask(client, data.getvalue()).json()["answers"][0]["kind"] == "answer"


@pytest.mark.parametrize("k", [1, 3, 20])
def test_as_many_hits_as_were_asked_for(client: TestClient, town: Town, k: int) -> None:
    assert len(ask(client, town.photo(), k=k).json()["answers"][0]["hits"]) == k


@pytest.mark.parametrize("k", ["0", "51", "many", "-1"])
def test_a_number_of_hits_out_of_range_is_refused(client: TestClient, town: Town, k: str) -> None:
    said = client.post(f"/locate?k={k}", files=[("photo", town.photo())])
    assert "k" in problem_of(said).detail


def test_a_setting_that_nobody_reads_is_refused_and_those_there_are_are_named(
    client: TestClient, town: Town
) -> None:
    photo = [("photo", town.photo())]
    said = client.post("/locate?k=2&min_precision=0.95", files=photo)
    assert problem_of(said).remedy == "use k, matches"
    assert problem_of(client.get("/about?x=1")).remedy == "leave it out"
    assert client.get("/places?tier=tail&limit=2").status_code == 200
    assert client.get("/health?probe=7").status_code == 200


def test_metres_of_several_zones_come_with_their_zone(two_zones: Town) -> None:
    with serving(two_zones.run) as client:
        assert client.get("/about").json()["zones"] == [-56, 34]
        answer = ask(client, two_zones.photo(), k=20).json()["answers"][0]
        listed = client.get("/places").json()["places"]
        one = client.get("/places/0").json()
    assert {hit["zone"] for hit in answer["hits"]} == {-56, 34}
    for spot in [answer["position"], *answer["hits"], *answer["places"], *listed, one]:
        assert (spot["latitude"] < 0) == (spot["zone"] < 0)
    assert {spot["zone"] for spot in one["outline"] + one["pictures"]} == {one["zone"]}


def test_every_stage_is_timed(client: TestClient, town: Town) -> None:
    spent = ask(client, town.photo()).json()["answers"][0]["elapsed_ms"]
    assert {"wait", "decode", "describe", "classify", "gather", "rank"} <= set(spent)
    assert spent["decode"] > 0
    assert spent["describe"] > 0


def test_an_unsure_service_abstains_with_a_reason_and_a_remedy(town: Town) -> None:
    with serving(town.run, min_precision=0.9) as client:
        answers = [ask(client, town.photo(n)).json()["answers"][0] for n in range(6)]
    shy = [one for one in answers if one["abstains"]]
    assert shy, "ImageNet's weights are unsure of coloured squares"
    assert all("right, each answer and all together" in one["reason"] for one in shy)
    assert all("photo" in one["remedy"] for one in shy)
    assert all(not one["reason"] for one in answers if not one["abstains"])


def test_abstaining_needs_a_calibration(own_town: Town) -> None:
    (own_town.run / "calibration.json").unlink()
    with pytest.raises(SettingError, match="calibration"), serving(own_town.run, min_precision=0.9):
        pass


def test_questions_asked_at_once_are_described_together(client: TestClient, town: Town) -> None:
    alone = [ask(client, town.photo(n % 12)).json()["answers"][0] for n in range(12)]
    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        said = list(threads.map(lambda n: ask(client, town.photo(n % 12)), range(48)))
    assert {one.status_code for one in said} == {200}
    for number, one in enumerate(said):
        east = one.json()["answers"][0]["position"]["east"]
        assert east == pytest.approx(alone[number % 12]["position"]["east"], abs=0.05)
    batches = _metric(client, "evenplace_batch_photos_count")
    assert _metric(client, "evenplace_batch_photos_sum") > batches


def test_a_photo_of_the_database_is_a_small_jpeg(client: TestClient, town: Town) -> None:
    hit = ask(client, town.photo()).json()["answers"][0]["hits"][0]
    said = client.get(f"/photos/{hit['photo']}?side=32")
    assert said.headers["content-type"] == "image/jpeg"
    assert max(Image.open(io.BytesIO(said.content)).size) == 32
    assert "immutable" in said.headers["cache-control"]


def test_a_photo_whose_file_has_gone_is_said_to_be(own_town: Town) -> None:
    with serving(own_town.run) as client:
        served = client.app.state.service.index_watch.current  # type: ignore[attr-defined]
        photos = served.engine.index.photos
        object.__setattr__(served, "path_of", lambda row: photos.paths[row] + ".gone")
        said = client.get(f"/photos/{served.version}-0")
    assert problem_of(said).type.endswith("photo-gone")
    assert "served" not in said.text, "no path of this machine"


def test_places_are_paged_and_ordered(client: TestClient) -> None:
    everything = client.get("/places?limit=1000").json()
    counts = [place["photos"] for place in everything["places"]]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == everything["total"]
    quiet = client.get("/places?order=quietest&limit=3").json()["places"]
    assert [place["photos"] for place in quiet] == counts[::-1][:3]
    second = client.get("/places?offset=2&limit=2").json()["places"]
    assert second == everything["places"][2:4]
    tails = client.get("/places?tier=tail&limit=1000").json()
    assert {place["tier"] for place in tails["places"]} == {"tail"}


def test_a_place_shows_its_photos(client: TestClient, engine: Search) -> None:
    busiest = client.get("/places?limit=1").json()["places"][0]
    place = client.get(f"/places/{busiest['place']}?limit=2").json()
    assert len(place["pictures"]) == 2
    assert len(place["outline"]) == 4
    rows = [int(one["photo"].partition("-")[2]) for one in place["pictures"]]
    assert (engine.index.labels[rows] == busiest["place"]).all()
    assert place["photos"] == busiest["photos"] == int(engine.index.sizes[busiest["place"]])


def test_the_numbers_of_the_database_add_up(client: TestClient, engine: Search) -> None:
    about = client.get("/about").json()
    assert about["photos"] == len(engine.index)
    assert sum(about["tiers"].values()) == about["places"]
    cells = client.get("/map").json()
    assert cells["index"] == about["index"]


def test_the_service_says_how_it_is(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/ready").json()["photos"] == 40
    text = client.get("/metrics").text
    assert "evenplace_requests_total" in text
    assert 'route="/photos/{id}"' in text or 'route="/health"' in text
    assert _metric(client, "evenplace_index_photos") == 40


@pytest.mark.parametrize("path", ["/nothing", "/photos/x", "/photos/00000000-1", "/places/4000"])
def test_what_is_not_there_is_a_typed_problem(client: TestClient, path: str) -> None:
    assert problem_of(client.get(path)).status == 404


def test_a_wrong_method_is_a_typed_problem(client: TestClient) -> None:
    said = client.get("/locate")
    assert problem_of(said).status == 405
    assert said.headers["allow"] == "POST"


def test_the_examples_are_what_the_types_say(client: TestClient) -> None:
    schema.Located.model_validate(EXAMPLES["locate"])
    schema.PlaceList.model_validate(EXAMPLES["places"])
    schema.PlaceDetail.model_validate(EXAMPLES["place"])
    api = client.get("/openapi.json").json()
    shown = api["paths"]["/locate"]["post"]["responses"]["200"]["content"]["application/json"]
    assert shown["example"] == EXAMPLES["locate"]
    assert set(api["paths"]) == {
        "/locate", "/photos/{id}", "/places", "/places/{id}", "/about", "/health", "/ready",
        "/metrics",
    }  # fmt: skip


def test_the_documentation_needs_no_other_machine(client: TestClient) -> None:
    text = client.get("/docs").text
    assert "POST /locate" in text
    assert "photo-unreadable" in text
    assert not re.findall(r"(?:src|href)=\"?https?:", text)


def test_every_kind_of_problem_has_a_status_and_a_sentence() -> None:
    for kind in KINDS:
        body = Problem(kind, "what", "do").body()
        assert body["status"] >= 400
        assert body["title"]


def _metric(client: TestClient, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))
