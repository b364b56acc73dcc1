# SPDX-License-Identifier: Apache-2.0
"""SDKs as PyPI has them, through weir.client, against the API of test_client_sdks.py: each is refused
once, and gets its answer. python3 sdks.py ADDRESS"""

import asyncio
import sys
import urllib.request

import anthropic
import botocore.session
import httpx
import httpx2
import openai
import requests
from botocore.config import Config

import weir.botocore
import weir.client
import weir.httpx
import weir.httpx2
import weir.requests

API = f"http://{sys.argv[1]}"
MESSAGES = [{"role": "user", "content": "hello"}]


def got(text):
    """Tells the API that a word has come: it sends the next one then."""
    if text:
        with urllib.request.urlopen(f"{API}/got", timeout=60):
            pass
    return text or ""


def with_openai(session):
    transport = weir.httpx.Transport(session, idempotency_key=True, scope="openai")
    with httpx.Client(transport=transport) as http:
        client = openai.OpenAI(base_url=f"{API}/openai/v1", api_key="k", http_client=http, max_retries=0)
        answer = client.chat.completions.create(model="m", messages=MESSAGES)
        assert answer.choices[0].message.content == "hello to you"
        events = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert "".join(got(event.choices[0].delta.content) for event in events) == "hello to you"


async def with_async_openai(session):
    transport = weir.httpx.AsyncTransport(session, idempotency_key=True, scope="async")
    async with httpx.AsyncClient(transport=transport) as http:
        client = openai.AsyncOpenAI(base_url=f"{API}/async/v1", api_key="k", http_client=http, max_retries=0)
        answer = await client.chat.completions.create(model="m", messages=MESSAGES)
        assert answer.choices[0].message.content == "hello to you"
        events = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert "".join([got(event.choices[0].delta.content) async for event in events]) == "hello to you"


def with_anthropic(session):
    transport = weir.httpx2.Transport(session, idempotency_key=True, scope="anthropic")
    with httpx2.Client(transport=transport) as http:
        client = anthropic.Anthropic(base_url=f"{API}/anthropic", api_key="k", http_client=http, max_retries=0)
        answer = client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        assert answer.content[0].text == "hello to you"
        with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            assert "".join(map(got, stream.text_stream)) == "hello to you"


def with_botocore(session):
    aws = botocore.session.get_session()
    client = aws.create_client(
        "dynamodb", region_name="eu-west-1", endpoint_url=f"{API}/dynamodb", aws_access_key_id="k",
        aws_secret_access_key="k", config=Config(retries={"max_attempts": 0}))
    weir.botocore.attach(client, session, idempotency_key=True, scope="dynamodb")
    assert client.list_tables()["TableNames"] == ["one"]
    client = aws.create_client("s3", region_name="eu-west-1", endpoint_url=f"{API}/s3", aws_access_key_id="k",
                               aws_secret_access_key="k", config=Config(retries={"max_attempts": 0}))
    weir.botocore.attach(client, session, scope="s3")
    client.put_object(Bucket="bucket", Key="key", Body=b"hello to you")
    assert client.get_object(Bucket="bucket", Key="key")["Body"].read() == b"hello to you"
    assert client.head_object(Bucket="bucket", Key="key")["ContentLength"] == len("hello to you")


def with_requests(session):
    with requests.Session() as http:
        http.mount("http://", weir.requests.Adapter(session, scope="requests"))
        answer = http.get(f"{API}/plain", params={"a": "b"}, timeout=60)
        assert answer.json() == {"said": "hello to you"} and answer.url.endswith("?a=b")
        assert int(http.head(f"{API}/plain", timeout=60).headers["Content-Length"]) > 0


with weir.client.Session(tries=3, time=60) as everything:
    for each in with_openai, with_anthropic, with_botocore, with_requests:
        each(everything)
    asyncio.run(with_async_openai(everything))
print("passed")
