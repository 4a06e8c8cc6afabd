"""The Dockerfile's own lines, in a bare virtual environment: no builder is needed to try them."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenplace.run.run import Run
from tests.run.boxes import ask, draw_run, free_port, serving

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Step:
    """An instruction and its words, continued lines joined."""

    name: str
    words: str

    @property
    def exec(self) -> list[str]:
        """The command of ENTRYPOINT, CMD or HEALTHCHECK, which are JSON."""
        found: list[str] = json.loads(self.words[self.words.index("[") :])
        return found


def steps() -> list[Step]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [Step(*line.split(maxsplit=1)) for line in lines]


def one(name: str) -> Step:
    (found,) = [step for step in steps() if step.name == name]
    return found


def test_the_service_runs_as_a_user_without_rights_and_tells_its_health() -> None:
    names = [step.name for step in steps()]
    user = one("USER").words
    assert any(f"useradd --system --no-create-home {user}" == step.words for step in steps())
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")
    assert "/health" in one("HEALTHCHECK").exec[-1]
    assert one("ENTRYPOINT").exec[:3] == ["evenplace", "serve", "/box"]


def test_everything_that_is_copied_is_let_through() -> None:
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [step.words.split()[:-1] for step in steps() if step.name == "COPY"]
    for source in (name for names in copied for name in names if not names[0].startswith("--")):
        assert (ROOT / source).exists()
        assert f"!{source.split('/')[0]}" in allowed


@pytest.mark.slow
@pytest.mark.long
def test_its_steps_serve_a_box_in_a_bare_environment(tmp_path: Path) -> None:
    run, photo = draw_run(tmp_path / "made")
    run.export_box(tmp_path / "box")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "bare"], check=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["PATH"] = f"{tmp_path / 'bare/bin'}{os.pathsep}{env['PATH']}"
    _build(tmp_path, env)
    brought = subprocess.check_output(["pip", "list", "--format=freeze"], env=env, text=True)
    assert not {"torch", "timm"} & {line.partition("=")[0] for line in brought.split()}
    said = ["evenplace", "locate", str(tmp_path / "box"), str(photo), "--json"]
    located = json.loads(subprocess.check_output(said, env=env))
    answer = Run.open(run.folder, engine="torch").locate(photo)
    assert [hit["path"] for hit in located["hits"]] == [hit.path for hit in answer.hits]
    program = [word.replace("/box", str(tmp_path / "box")) for word in one("ENTRYPOINT").exec]
    port = free_port()
    with serving(program[:3], port, env) as address:
        assert ask(address, photo)["hits"][0]["similarity"] > 0.5
        check = [word.replace("8000", str(port)) for word in one("HEALTHCHECK").exec]
        subprocess.run(check, check=True, env=env)


def _build(home: Path, env: dict[str, str]) -> None:
    """Copy and run what the file says, its folders below `home`."""

    def inside(words: str) -> str:
        return re.sub(r"(?<!\S)/", f"{home}/", words)

    for step in steps():
        if step.name == "COPY" and not step.words.startswith("--"):
            *sources, target = step.words.split()
            Path(inside(target)).mkdir(parents=True, exist_ok=True)
            for source in sources:
                where = f"{ROOT / source}/." if (ROOT / source).is_dir() else f"{ROOT / source}"
                subprocess.run(["cp", "-r", where, inside(target)], check=True)
        elif step.name == "RUN" and shlex.split(step.words)[0] == "pip":
            subprocess.run(inside(step.words), shell=True, check=True, env=env)
