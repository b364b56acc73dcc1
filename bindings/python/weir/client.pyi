# SPDX-License-Identifier: Apache-2.0
# Types of weir.client. Times are seconds; None is "not known".
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Literal, NamedTuple

from weir import Error

__all__ = ["Cancelled", "Failed", "GaveUp", "KnownLimit", "Limited", "Refused", "Response", "Session",
           "Timeout", "Try"]

class KnownLimit(NamedTuple):
    limit: int | None
    remaining: int | None
    reset: float | None
    interval: float | None

class Try(NamedTuple):
    url: str
    number: int
    status: int
    error: str | None
    waited: float
    took: float
    next_wait: float | None
    limit: KnownLimit

class Response:
    url: str
    status: int
    tries: int
    limit: KnownLimit
    fields: list[tuple[str, str]]
    headers: dict[str, str]
    content: bytes
    @property
    def ok(self) -> bool: ...
    @property
    def text(self) -> str: ...
    def json(self) -> Any: ...

class Failed(Error):
    response: Response | None
    tries: int
    limit: KnownLimit
    retry_after: float | None

class Limited(Failed): ...
class Timeout(Failed): ...
class GaveUp(Failed): ...
class Refused(Failed): ...
class Cancelled(Failed): ...

class Session:
    headers: dict[str, str]
    def __init__(self, state: str | PathLike[str] | None = None, *, concurrency: int = 0,
                 host_concurrency: int = 0, adaptive: bool = False, tries: int = 0,
                 time: float = 0.0, try_time: float = 0.0,
                 jitter: Literal["full", "equal", "decorrelated"] = "full",
                 backoff_base: float = 0.0, backoff_cap: float = 0.0, body_most: int = 0,
                 queue_most: int = 0, follow: bool = False, user_agent: str | None = None,
                 seed: int = 0, on_try: Callable[[Try], object] | None = None,
                 headers: Mapping[str, str] | None = None,
                 retry_on: Iterable[int] = ()) -> None: ...
    def request(self, method: str, url: str, *, headers: Mapping[str, str] | None = None,
                data: str | bytes | None = None, json: Any = None, idempotency_key: bool = False,
                priority: int = 0, scope: str | None = None, tries: int = 0,
                time: float = 0.0) -> Response: ...
    def get(self, url: str, **options: Any) -> Response: ...
    def head(self, url: str, **options: Any) -> Response: ...
    def post(self, url: str, **options: Any) -> Response: ...
    def put(self, url: str, **options: Any) -> Response: ...
    def patch(self, url: str, **options: Any) -> Response: ...
    def delete(self, url: str, **options: Any) -> Response: ...
    async def arequest(self, method: str, url: str, **options: Any) -> Response: ...
    async def aget(self, url: str, **options: Any) -> Response: ...
    def known(self, url: str, scope: str | None = None) -> KnownLimit | None: ...
    def expect(self, requests: int) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None: ...
