# SPDX-License-Identifier: Apache-2.0
# Types of the package weir. Times are seconds; infinity is never.
from os import PathLike
from types import TracebackType
from typing import Literal, final
from uuid import UUID

__all__ = ["Answer", "Error", "Limit", "Limiter", "NotFoundError", "RequestError", "Reservation",
           "RulesError", "StateError", "__version__", "mistakes", "open"]

__version__: str

Path = str | bytes | PathLike[str]
Value = str | bytes | int | float | UUID | None
Attributes = (dict[str, str] | dict[str, bytes] | dict[str, int] | dict[str, str | None]
              | dict[str, str | bytes | None] | dict[str, Value])
Mistake = tuple[str, int, int, str]  # file, line, column, message

class Error(Exception):
    code: int

class RulesError(Error):
    mistakes: list[Mistake]

class StateError(Error): ...
class RequestError(Error, ValueError): ...
class NotFoundError(Error, LookupError): ...

@final
class Reservation: ...

@final
class Limit:
    name: str
    allowed: bool
    shadow: bool
    unlimited: bool
    borrowed: bool
    overflow: bool
    algorithm: str
    warning: int
    cost: int
    window: float
    limit: int
    remaining: int
    retry_after: float
    reset_after: float
    def __bool__(self) -> bool: ...

@final
class Answer:
    allowed: bool
    status: int
    denied_by: str | None
    retry_after: float
    delay: float
    remaining: int | None
    warning: int
    action: Literal["mark", "delay", "challenge", "tarpit", "reject"] | None
    standing: str | None
    reason: str | None
    class_name: str | None
    store_failed: bool
    repeated: bool
    headers: tuple[tuple[str, str], ...]
    body: bytes
    content_type: str | None
    lease: str | None
    reservation: Reservation | None
    limits: tuple[Limit, ...]
    def __bool__(self) -> bool: ...

@final
class Limiter:
    reads: tuple[str, ...]
    outcomes: frozenset[int]
    refunds: bool
    closed: bool
    state_error: str | None
    def passes(self, code: int, /) -> bool: ...
    def __init__(self, rules: Path, state: Path | None = None, *, state_size: int = 0,
                 state_owner: str | None = None, state_group: str | None = None,
                 state_mode: int = 0, state_patience: float | None = None,
                 state_open_patience: float | None = None,
                 leases_end_with_process: bool = True, state_must_open: bool = False,
                 test_clock: float | None = None) -> None: ...
    def check(self, attributes: Attributes | None = None, /, *, cost: int = 1,
              client: str | None = None, forwarded_for: str | bytes | None = None,
              forwarded: str | bytes | None = None, trusted: bool = True,
              idempotency_key: str | bytes | None = None, peek: bool = False) -> Answer: ...
    def reserve(self, attributes: Attributes | None = None, /, *, cost: int = 1,
                client: str | None = None, forwarded_for: str | bytes | None = None,
                forwarded: str | bytes | None = None, trusted: bool = True,
                life: float | None = None, only_delayed: bool = False) -> Answer: ...
    def settle(self, reservation: Reservation | str, cost: int, /) -> None: ...
    def report(self, reservation: Reservation | str, status: int, /) -> None: ...
    def outcome(self, status: int, attributes: Attributes | None = None, /, *,
                client: str | None = None, forwarded_for: str | bytes | None = None,
                forwarded: str | bytes | None = None, trusted: bool = True) -> None: ...
    def cancel(self, reservation: Reservation | str, /) -> None: ...
    def release(self, lease: str, /) -> None: ...
    def renew(self, lease: str, /) -> None: ...
    def tend(self) -> int: ...
    def advance(self, seconds: float, /) -> None: ...
    def reload(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Limiter: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None: ...

def open(rules: Path, state: Path | None = None, *, state_size: int = 0,
         state_owner: str | None = None, state_group: str | None = None, state_mode: int = 0,
         state_patience: float | None = None, state_open_patience: float | None = None,
         leases_end_with_process: bool = True, state_must_open: bool = False) -> Limiter: ...
def mistakes(rules: Path) -> list[Mistake]: ...
