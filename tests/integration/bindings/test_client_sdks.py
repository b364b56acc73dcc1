# SPDX-License-Identifier: Apache-2.0
"""SDKs as their registries have them now, unchanged, through the transports of the client: the SDKs of
OpenAI and Anthropic, botocore, requests, octokit, go-github, and fetch. Each program of sdks/ runs
against the API of this file, which refuses the first request of each of its parts."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from daemon.proxies import Application, Handler
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


class Api(Application):
    """`refused` and `admitted`: by the first part of the path, as each API says it."""

    def __init__(self):
        self.refused, self.admitted = refused, admitted = {}, {}

        class Answers(Handler):
            def reply(self, status, body, **fields):
                self.send_response(status)
                fields = {"Content-Type": "application/json", **fields, "Content-Length": str(len(body))}
                for name, value in fields.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def answer(self):
                asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                part = self.path.split("/")[1].partition("?")[0]
                if part not in refused:
                    refused[part] = 1
                    self.reply(429, b'{"error": {"message": "slowly", "type": "rate_limit_error"}}',
                               retry_after_ms="20")
                    return
                admitted[part] = admitted.get(part, 0) + 1
                if b'"stream":true' in asked.replace(b" ", b""):
                    events = [chunk(word) for word in ("hello", " to", " you")] + ["[DONE]"]
                    self.reply(200, "".join(f"data: {event}\n\n" for event in events).encode(),
                               Content_Type="text/event-stream")
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
