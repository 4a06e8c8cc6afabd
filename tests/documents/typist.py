"""Types the blocks of one document in order: commands at the command line, Python in one session.

What only costs time is made small (`SMALL`), addresses of other machines become this one's, and
stand-ins are a part of every named test.  Nothing else is changed.
"""

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evenplace.cli import main
from tests.documents.blocks import ROOT, TYPED, Block, Command, read_blocks, read_commands

SMALL = {"--seeds": "1", "--nproc-per-node": "2"}
TINY_TOWN = {"--photos": "24", "--queries": "8"}  # of verbs that draw one
HERE = {"http://milvus:19530": "milvus.db"}  # a file name is Milvus Lite
QUICK = ("epochs=1", "image_size=96")  # of what trains, where the document does not say
FEWER = ("folds=2", "verify=8")  # of what has folds: the default, and studies of it
SERVICE = "127.0.0.1:8000"
PATIENCE = 120  # seconds for a service to start


@dataclass
class Typist:
    """One document's session: its Python names, and the services its commands started."""

    names: dict[str, Any]
    services: list[subprocess.Popen[str]] = field(default_factory=list)
    address: str = SERVICE

    def type_all(self, page: Path) -> None:
        """Type every block of a document that does not say why not."""
        for block in read_blocks(page):
            if block.kind in TYPED and not block.unrun:
                self.type(block)

    def type(self, block: Block) -> None:
        """Type a block and compare its answers with those shown."""
        if block.kind == "console":
            for command in read_commands(block):
                self._command(block, command)
        else:
            code = block.text.replace(SERVICE, self.address)
            for there, here in HERE.items():
                code = code.replace(there, here)
            code = code.replace('recipe="dapr-m"', "recipe=recipe")  # as quick as the command
            # the block's own lines in a traceback
            exec(compile("\n" * block.line + code, ROOT / block.document, "exec"), self.names)

    def _command(self, block: Block, command: Command) -> None:
        words = shrink([HERE.get(word, word) for word in command.words])
        if words[0] == "make":
            words = shrink(_made_by(words[1]))
        if words[:2] == ["evenplace", "serve"]:
            said, code = self._serve(words), 0
        elif words[0] == "torchrun":
            said, code = _in_a_process([sys.executable, "-m", "torch.distributed.run", *words[1:]])
        else:
            said, code = in_this_process(words)
        where = f"{block}: {' '.join(command.words)}\n{said}"
        assert code == (2 if command.refused else 0), f"exit code {code}\n{where}"
        for line in command.shown:
            assert fits(line, said.replace(self.address, SERVICE)), f"not said: {line}\n{where}"

    def _serve(self, words: list[str]) -> str:
        """Start the service on a free port and leave it running for the blocks that follow."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        port = self.address.split(":")[1]
        service = subprocess.Popen(
            [sys.executable, "-m", *words, "--port", port],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.services.append(service)
        assert service.stdout is not None
        said = ""
        for line in service.stdout:
            said += line
            if "open http" in line:
                return said
        raise AssertionError(f"the service ended: {said}")

    def end(self) -> None:
        """Stop what was started, and nothing else."""
        for service in self.services:
            service.send_signal(signal.SIGTERM)
            service.wait(PATIENCE)
            if service.stdout is not None:
                service.stdout.close()


def shrink(words: list[str]) -> list[str]:
    """The same command with less to do."""
    small = dict(SMALL)
    if "--data" not in words or "town" in words:
        small |= TINY_TOWN if words[1:2] in (["study"], ["demo"]) else {}
    for number, word in enumerate(words[:-1]):
        if word in small:
            words[number + 1] = small[word]
    if words[1:2] == ["demo"]:
        words += [word for pair in TINY_TOWN.items() if pair[0] not in words for word in pair]
        words += [word for setting in QUICK for word in ("--set", setting)]
    if words[1:2] in (["train"], ["study"]) and "--preset" not in words:
        told = " ".join(words)
        folds = words[1] == "train" and ("--method" not in words or "dapr-m" in words)
        folds = folds or words[2:3] in (["second-look"], ["elsewhere"])
        quick = QUICK + FEWER if folds else QUICK
        words += [w for s in quick if s.split("=")[0] not in told for w in ("--set", s)]
    if "--protocol" in words and "--allow-partial" not in words and words[1] == "evaluate":
        words.append("--allow-partial")
    return words


def _made_by(target: str) -> list[str]:
    """The program's line of a target of the Makefile."""
    rule = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert rule is not None, target
    (line,) = [line for line in rule[1].splitlines() if "/evenplace" in line]
    return line.strip().replace("$(BIN)/", "").split()


def in_this_process(words: list[str]) -> tuple[str, int]:
    """What the program says on both streams, and its exit code."""
    assert words[0] == "evenplace", f"nobody knows how to type {words[0]!r}"
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, _heard(said):
        patch.setattr(sys, "argv", words)
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            return said.getvalue(), code
    return said.getvalue(), 0


@contextlib.contextmanager
def _heard(said: io.StringIO) -> Iterator[None]:
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield


def _in_a_process(words: list[str]) -> tuple[str, int]:
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return done.stdout + done.stderr, done.returncode


def fits(shown: str, said: str) -> bool:
    """Whether a line of a document was said, … standing for anything and blanks for blanks."""
    parts = [re.escape(" ".join(part.split())) for part in shown.split("…")]
    return re.search(".*?".join(parts), " ".join(said.split())) is not None
