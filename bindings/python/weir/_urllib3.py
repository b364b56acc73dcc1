# SPDX-License-Identifier: Apache-2.0
"""Answers as urllib3 hands them over, for the libraries that are built on it."""

import io
from http.client import HTTPMessage, responses

import urllib3

from weir._transport import answered


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


def raw_answer(method, response):
    """An answer as urllib3 hands it over, to be decoded; one to HEAD has a length and no body."""
    fields = answered(response)
    return urllib3.HTTPResponse(body=io.BytesIO(response.content), headers=fields, status=response.status,
                                reason=responses.get(response.status, ""), preload_content=False,
                                decode_content=False, original_response=_Head(fields),
                                request_method=method)
