# SPDX-License-Identifier: Apache-2.0
"""A client of server-sent events, by hand."""

import json
import zlib

from daemon.http import Client, request_bytes


class Events:
    """One stream of /v1/events; `head` is the reply's head."""

    def __init__(self, address, fields=None, parts=None, **options):
        self.client = Client(address, **options)
        path = "/v1/events" if parts is None else f"/v1/events?parts={parts}"
        self.client.send(request_bytes("GET", path, {"Accept": "text/event-stream",
                                                     **(fields or {})}))
        self.head = self.client.reply(head_only=True)
        packed = self.head.status == 200 and self.head.fields.get("content-encoding") == "gzip"
        self.unpack = zlib.decompressobj(31).decompress if packed else bytes
        self.text, self.bytes = b"", 0  # what is not read yet; what has come

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def next(self):
        """The next snapshot."""
        while True:
            while b"\n\n" not in self.text:
                if not self.client.buffer:
                    self.client._more()
                self.bytes += len(self.client.buffer)
                self.text += self.unpack(self.client.buffer)
                self.client.buffer = b""
            event, _, self.text = self.text.partition(b"\n\n")
            if event.startswith(b"data: "):
                return json.loads(event[6:])

    def until(self, condition):
        """The first snapshot of which a condition holds; the test's time limit bounds it."""
        while True:
            snapshot = self.next()
            if condition(snapshot):
                return snapshot

    def ended(self):
        """Reads to the end of the stream; whether the server has ended it."""
        try:
            while True:
                self.client._more()
        except EOFError:
            return True
