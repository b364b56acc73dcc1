# SPDX-License-Identifier: Apache-2.0
"""Clients of botocore and boto3 over weir.client, so that they keep to servers' rate limits.

    limits = weir.client.Session(state="limits.map")
    s3 = boto3.client("s3")
    weir.botocore.attach(s3, limits)

A final answer comes as it is, also the last 429. Where there is none: ReadTimeoutError or
EndpointConnectionError of botocore. A body that botocore hands on (S3's GetObject, event streams) is
read while it arrives, any other whole; timeouts, proxies and certificates of botocore are not used. The
weir.client.Session is the caller's to close.
"""

from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from weir._transport import asked, last_answer, whole_body
from weir._urllib3 import raw_answer
from weir.client import Failed, Limited, Timeout

__all__ = ["attach"]


def attach(client, session, **options):
    """Sends what the client asks for through the session; options are those of Session.request, such as
    idempotency_key."""

    def send(request, **_):
        make = session.stream if request.stream_output else session.request
        try:
            answer = make(request.method, request.url, headers=asked(request.headers.items()),
                          data=whole_body(request.body), **options)
        except Failed as error:
            answer = last_answer(error)
            if answer is None:
                kind = ReadTimeoutError if isinstance(error, (Limited, Timeout)) else EndpointConnectionError
                raise kind(endpoint_url=request.url, error=error) from error
        raw = raw_answer(request.method, answer)
        return AWSResponse(request.url, answer.status, raw.headers, raw)

    client.meta.events.register("before-send", send, unique_id=f"weir-{id(session)}")
