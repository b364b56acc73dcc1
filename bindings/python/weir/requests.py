# SPDX-License-Identifier: Apache-2.0
"""A transport adapter of requests over weir.client: what uses a requests.Session keeps to servers' rate
limits.

    limits = weir.client.Session(state="limits.map")
    with requests.Session() as session:
        session.mount("https://", weir.requests.Adapter(limits))

A final answer comes as it is, also the last 429. Where there is none: requests.Timeout for a request
that found no room under the limit in its time, requests.ReadTimeout, or requests.ConnectionError. With
stream=True an answer is returned when it has begun, and its body read while it arrives; without, it is
read whole, and tried again if it breaks off. Timeouts, proxies and certificates of requests are not
used. The weir.client.Session is the caller's to close.
"""

import requests
from requests.adapters import HTTPAdapter

from weir._transport import asked, last_answer, whole_body
from weir._urllib3 import raw_answer
from weir.client import Failed, Limited, Timeout

__all__ = ["Adapter"]


class Adapter(HTTPAdapter):
    """Over a weir.client.Session; options are those of Session.request, such as idempotency_key."""

    def __init__(self, session, **options):
        super().__init__()
        self._session, self._options = session, options

    def send(self, request, stream=False, timeout=None, verify=True, cert=None, proxies=None):
        make = self._session.stream if stream else self._session.request
        try:
            answer = make(
                request.method, request.url, headers=asked(request.headers.items()),
                data=whole_body(request.body), **self._options)
        except Failed as error:
            answer = last_answer(error)
            if answer is None:
                kind = (requests.Timeout if isinstance(error, Limited)
                        else requests.ReadTimeout if isinstance(error, Timeout)
                        else requests.ConnectionError)
                raise kind(str(error), request=request) from error
        return self.build_response(request, raw_answer(request.method, answer))
