# SPDX-License-Identifier: Apache-2.0
"""Answers as urllib3 hands them over, for the libraries that are built on it."""

import io
from http.client import HTTPMessage, responses

import urllib3

from weir._transport import answered
from weir.client import Failed, Response, Timeout


class _Head:
    """Where requests looks for cookies."""

    def __init__(self, fields):
        self.msg = HTTPMessage()
        for name, value in fields:
            self.msg[name] = value

    def isclosed(self):
        return True

    def close(self):
        pass


class _Body(io.RawIOBase):
    """The body of a weir.client.Stream as a file. Errors are those of a socket, which urllib3 knows."""

    def __init__(self, stream):
        super().__init__()
        self._stream, self._rest = stream, b""

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            self._rest = self._rest or self._stream.read()
        except Timeout as error:
            raise TimeoutError(str(error)) from error
        except Failed as error:
            raise ConnectionError(str(error)) from error
        piece = self._rest[:len(buffer)]
        self._rest = self._rest[len(piece):]
        buffer[:len(piece)] = piece
        return len(piece)

    def read1(self, size=-1):
        return self.read(size if size is not None and size >= 0 else io.DEFAULT_BUFFER_SIZE)

    def close(self):
        self._stream.close()
        super().close()


class _Answer(urllib3.HTTPResponse):
    """Its pieces are handed on when they come: since urllib3 2, read() waits until it has `amt` bytes."""

    if hasattr(urllib3.HTTPResponse, "read1"):
        def stream(self, amt=2**16, decode_content=None):
            while piece := self.read1(amt, decode_content=decode_content):
                yield piece


def raw_answer(method, response):
    """An answer as urllib3 hands it over, to be decoded; one to HEAD has a length and no body."""
    fields = answered(response)
    whole = isinstance(response, Response)
    return _Answer(body=io.BytesIO(response.content) if whole else _Body(response), headers=fields,
                   status=response.status, reason=responses.get(response.status, ""), preload_content=False,
                   decode_content=False, original_response=_Head(fields), request_method=method)
