# SPDX-License-Identifier: Apache-2.0
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from weir import Limiter, Path

__all__ = ["open", "peer"]

def open(rules: Path, *, at: datetime | float | None = None, state_size: int = 0,
         leases_end_with_process: bool = True) -> Limiter: ...
def peer(app: Callable[..., Awaitable[None]], address: str) -> Callable[[Any, Any, Any], Awaitable[None]]: ...
