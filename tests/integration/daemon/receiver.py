# SPDX-License-Identifier: Apache-2.0
"""A receiver of webhooks: a little HTTP server that keeps what it is sent and answers as set."""

import base64
import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = base64.b64encode(bytes(range(32))).decode()


def signed_by(secret, message):
    """Whether a message carries a signature by this secret (Standard Webhooks)."""
    content = f"{message.id}.{message.timestamp}.".encode() + message.body
    mac = hmac.new(base64.b64decode(secret), content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(mac).decode()}" in message.fields["webhook-signature"].split(" ")


class Message:
    def __init__(self, handler):
        self.path = handler.path
        self.fields = {name.lower(): value for name, value in handler.headers.items()}
        self.body = handler.rfile.read(int(self.fields["content-length"]))
        self.id = self.fields["webhook-id"]
        self.timestamp = int(self.fields["webhook-timestamp"])

    @property
    def data(self):
        return json.loads(self.body)["data"]


class Receiver:
    """`answers` are statuses, or (status, fields), or what writes one to a handler, for one message
    after the other; then 204. While `held` is set, nobody is answered. `listen=False`: the port is taken, and refuses."""

    def __init__(self, answers=(), listen=True, tls=None):
        self.answers, self.messages = list(answers), []
        self.lock, self.go = threading.Lock(), threading.Event()
        self.go.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                receiver.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.daemon_threads = True
        self.server.server_bind()
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.scheme = "https" if tls else "http"
        if listen:
            self.listen()

    def listen(self):
        self.server.server_activate()
        self.thread.start()

    def hold(self):
        self.go.clear()

    def release(self):
        self.go.set()

    def answer(self, handler):
        message = Message(handler)
        with self.lock:
            self.messages.append(message)
            answer = self.answers.pop(0) if self.answers else 204
        self.go.wait(60)
        status, fields = answer if isinstance(answer, tuple) else (answer, {})
        try:
            if callable(answer):
                answer(handler)
                return
            handler.send_response(status)
            for name, value in fields.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        except OSError:
            handler.close_connection = True  # the sender has lost patience

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server.server_address[1]}/hook"

    def settings(self, **more):
        return {"url": self.url, "secret": SECRET} | more

    def all(self):
        with self.lock:
            return list(self.messages)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()
        if self.thread.is_alive():
            self.server.shutdown()
        self.server.server_close()
