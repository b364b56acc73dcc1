# SPDX-License-Identifier: Apache-2.0
"""SDKs as their registries have them now, unchanged, through the transports of the client: the SDKs of
OpenAI and Anthropic, botocore, requests, octokit, go-github, and fetch. Each program of sdks/ runs
against the API of this file, which refuses the first request of each of its parts. Of a streamed answer it sends
the next word when the program has said (/got) that the one before has come."""

import json
import shutil
import sys
import threading
from pathlib import Path

import pytest

from daemon.proxies import Application, Handler
from daemon.waiting import SECONDS_MAX
from model.program import ROOT, weir_path
from python_package import FOLDER as PYTHON
from python_package import needs_package
from registry import Folder, needed

SDKS = Path(__file__).parent / "sdks"
BUILT = Path(weir_path()).resolve().parent
NODE = BUILT / "bindings/node"
SAID = "hello to you"
PACKAGES = ("openai", "anthropic", "botocore", "requests", "httpx")


def chunk(text):
    return json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]})


def completion():
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}]}


def message():
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "stop_sequence": None, "content": [{"type": "text", "text": SAID}],
            "usage": {"input_tokens": 1, "output_tokens": 3}}


def events_of_anthropic():
    """(name, event) of a message that is streamed; the words are content_block_delta."""
    yield "message_start", {"message": {**message(), "content": [], "stop_reason": None}}
    yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
    for word in ("hello", " to", " you"):
        yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word}}
    yield "content_block_stop", {"index": 0}
    yield "message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}}
    yield "message_stop", {}


def events(part):
    """(whether it is a word, bytes) of a streamed answer."""
    if part == "anthropic":
        for name, event in events_of_anthropic():
            yield name == "content_block_delta", f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n".encode()
        return
    for word in ("hello", " to", " you"):
        yield True, f"data: {chunk(word)}\n\n".encode()
    yield False, b"data: [DONE]\n\n"


class Api(Application):
    """`refused` and `admitted`: by the first part of the path, as each API says it."""

    def __init__(self):
        self.refused, self.admitted = refused, admitted = {}, {}
        got = threading.Semaphore(0)

        class Answers(Handler):
            def reply(self, status, body, **fields):
                self.send_response(status)
                fields = {"Content-Type": "application/json", **fields, "Content-Length": str(len(body))}
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def stream(self, part):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for word, event in events(part):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                    assert not word or got.acquire(timeout=SECONDS_MAX)
                self.wfile.write(b"0\r\n\r\n")

            def answer(self):
                asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                part = self.path.split("/")[1].partition("?")[0]
                if part == "got":
                    got.release()
                    self.reply(200, b"")
                    return
                if part not in refused:
                    refused[part] = 1
                    self.reply(429, b'{"error": {"message": "slowly", "type": "rate_limit_error"}}',
                               retry_after_ms="20")
                    return
                admitted[part] = admitted.get(part, 0) + 1
                if b'"stream":true' in asked.replace(b" ", b""):
                    self.stream(part)
                elif part == "s3":
                    self.reply(200, b"" if self.command == "PUT" else SAID.encode(), ETag='"e"')
                else:
                    known = {"anthropic": message(), "dynamodb": {"TableNames": ["one"]},
                             "github": {"login": "octocat", "id": 1, "said": SAID},
                             "plain": {"said": SAID}}
                    self.reply(200, json.dumps(known.get(part, completion())).encode())

            do_GET = do_HEAD = do_POST = do_PUT = answer

        super().__init__(Answers)


@pytest.fixture(name="api")
def fixture_api():
    with Api() as api:
        yield api


def passes(api, done, *parts):
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
    assert api.refused == dict.fromkeys(parts, 1) and set(api.admitted) == set(parts)


@needs_package
def test_the_sdks_of_pypi(api):
    folder = Folder(SDKS, module=PYTHON)
    try:
        folder.install("packages of PyPI", sys.executable, "-m", "pip", "install", "-q", "--only-binary", ":all:",
                       "--no-cache-dir", "--target", "installed", *PACKAGES)
        folder.environment["PYTHONPATH"] = "installed:module"
        passes(api, folder.run(sys.executable, "sdks.py", api.address),
               "openai", "async", "anthropic", "dynamodb", "s3", "plain")
    finally:
        folder.remove()


@pytest.mark.skipif(not (NODE / "weir-client.node").is_file(), reason="weir-client.node was not built")
def test_the_sdks_of_npm(api):
    needed("node")
    needed("npm")
    folder = Folder(SDKS)
    try:
        folder.install("packages of npm", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
        module = folder.path / "work/node_modules/weir"
        module.mkdir(mode=0o755)
        for each in NODE.iterdir():
            if each.is_file():
                shutil.copy(each, module)
        passes(api, folder.run("node", "sdks.mjs", api.address), "openai", "anthropic", "github", "plain")
    finally:
        folder.remove()


def test_the_sdks_of_go(api):
    needed("go")
    needed("gcc")
    libraries = [each for each in (BUILT / "src/client").glob("libweir-client.so*") if each.is_file()]
    if not libraries:
        pytest.skip("libweir-client was not built")
    folder = Folder(SDKS, weir=ROOT / "bindings/go", include=ROOT / "include")
    try:
        library = folder.path / "work/lib"
        library.mkdir(mode=0o755)
        for each in libraries:
            shutil.copy(each, library)
        (library / "weir-client.pc").write_text(
            f"Name: weir-client\nDescription: weir\nVersion: 0\nCflags: -I{library.parent / 'include'}\n"
            f"Libs: -L{library} -lweir-client\n", encoding="utf-8")
        folder.environment |= {"PKG_CONFIG_PATH": str(library), "LD_LIBRARY_PATH": str(library), "CGO_ENABLED": "1"}
        folder.install("modules of Go", "go", "mod", "tidy")
        done = folder.run("go", "run", ".", api.address, seconds=580)
        passes(api, done, "openai", "github", "plain")
    finally:
        folder.remove()
