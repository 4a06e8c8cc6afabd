"""The client and the examples of docs/serve.md, against a service on a real port."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenplace as ep
from evenplace.serve import client as client_module
from evenplace.serve import schema
from evenplace.serve.app import create_app
from evenplace.serve.client import Client, ServiceError
from evenplace.serve.settings import Settings
from tests.serve.conftest import Town, listening

GUIDE = Path(__file__).parents[2] / "docs" / "serve.md"
COMMANDS = re.findall(r"```bash\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def test_the_client_speaks_the_service_s_types(address: str, town: Town) -> None:
    with ep.Client(address) as client:
        answer = client.locate(town.queries[0], k=3)
        assert isinstance(answer, schema.Answer)
        assert len(answer.hits) == 3
        assert client.locate(town.photo(), k=3).hits == answer.hits, "a path or its bytes"
        assert client.photo(answer.hits[0].photo, side=32).startswith(b"\xff\xd8")
        assert client.place(answer.hits[0].place).pictures
        places = list(client.places(page=3))
        assert len(places) == client.ready().places == len({place.place for place in places})
        assert all(place.tier == "tail" for place in client.places(tier="tail"))


def test_the_client_raises_the_service_s_reason(address: str, town: Town) -> None:
    with Client(address) as client:
        with pytest.raises(ServiceError, match="send a JPEG, PNG or WebP") as refused:
            client.locate(b"no photo")
        assert refused.value.kind == "photo-unreadable"
        answers = client.locate_all([town.photo(), b"no photo"])
        assert [one.kind for one in answers] == ["answer", "refused"]
    with (
        Client("http://127.0.0.1:9") as nobody,
        pytest.raises(ServiceError, match="nobody answers"),
    ):
        nobody.ready()


def test_the_client_brings_its_token(town: Town) -> None:
    token = "a-token-of-some-length"
    with listening(create_app(Settings(town.run, token=token))) as address:
        with Client(address, token=token) as client:
            assert client.locate(town.photo()).hits
        with Client(address, token="another-wrong-token") as client:
            with pytest.raises(ServiceError) as refused:
                client.locate(town.photo())
            assert refused.value.kind == "token-wrong"


def test_the_client_needs_no_torch() -> None:
    code = "import evenplace, sys; evenplace.Client(); print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_guide_s_commands_work_when_typed(address: str, town: Town, command: str) -> None:
    environment = os.environ | {"SERVICE": address, "PHOTO": str(town.queries[0])}
    said = subprocess.run(
        ["bash", "-euc", command], env=environment, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    if "/locate" in command:
        located = schema.Located.model_validate(json.loads(said.stdout))
        assert len(located.answers) == command.count("-F photo") or "--data-binary" in command


def test_the_guide_shows_every_route(address: str) -> None:
    import httpx

    described = httpx.get(f"{address}/openapi.json", trust_env=False).json()
    for path in described["paths"]:
        assert path in GUIDE.read_text(), path
    assert len(COMMANDS) >= 6


@pytest.mark.parametrize(
    ("said", "waited"),
    [("3", 3), ("0", 0), ("9999", 30), ("", 1), ("Wed, 21 Oct 2026 07:28:00 GMT", 1), ("-5", 1)],
)
def test_the_client_waits_what_it_understands(said: str, waited: float) -> None:
    assert client_module._seconds(said) == waited
