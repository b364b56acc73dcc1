# SPDX-License-Identifier: Apache-2.0
"""What the transports of HTTP libraries over weir.client have in common."""

from weir.client import Timeout

# What libcurl writes itself.
_OWN = {"host", "content-length", "transfer-encoding", "connection", "expect"}
# What describes the transfer, which has ended.
_ENDED = {"transfer-encoding", "connection"}


def _text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def asked(fields):
    """The header fields of a request, pairs of text or bytes, without those that libcurl writes. Lines
    of one name are joined, as a proxy may."""
    given = {}
    for name, value in ((_text(name), _text(value)) for name, value in fields):
        if name.lower() not in _OWN:
            between = "; " if name.lower() == "cookie" else ", "
            given[name] = given[name] + between + value if name in given else value
    return given


def answered(response):
    """The header fields of an answer whose body was read."""
    return [(name, value) for name, value in response.fields if name not in _ENDED]


def last_answer(error):
    """The answer that a Failed hands on: such as the last 429. None: the caller raises an error."""
    return None if isinstance(error, Timeout) else error.response


def whole_body(body):
    """A body as bytes: a file and an iterator of pieces are read."""
    if hasattr(body, "read"):
        body = body.read()
    elif body is not None and not isinstance(body, (str, bytes, bytearray)):
        body = b"".join(body)
    return body.encode() if isinstance(body, str) else body or None
