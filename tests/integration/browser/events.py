# SPDX-License-Identifier: Apache-2.0
"""A client of server-sent events, by hand."""

import json

from daemon.http import Client, request_bytes


class Events:
    """One stream of /v1/events; `head` is the reply's head."""

    def __init__(self, address, fields=None, **options):
        self.client = Client(address, **options)
        self.client.send(request_bytes("GET", "/v1/events", {"Accept": "text/event-stream",
                                                             **(fields or {})}))
        self.head = self.client.reply(head_only=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def next(self):
        """The next snapshot."""
        while True:
            while b"\n\n" not in self.client.buffer:
                self.client._more()
            event, _, self.client.buffer = self.client.buffer.partition(b"\n\n")
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
