# SPDX-License-Identifier: Apache-2.0
"""A rate limiter: exact limits by one rules file, counted in one state by all processes.

    import weir

    limiter = weir.open("weir.yaml", state="/run/app/weir.state")
    answer = limiter.check({"method": "POST", "path": "/login"}, client="192.0.2.1")
    if not answer:
        print(answer.denied_by, answer.retry_after)

weir.wsgi and weir.asgi are middleware; weir.flask, weir.starlette and weir.django speak to these
frameworks, and weir.client keeps to other servers' limits.
"""

import os

from weir._weir import (Answer, Error, Limit, Limiter, NotFoundError, RequestError, Reservation,
                        RulesError, StateError, __version__)
from weir._weir import mistakes as _mistakes

__all__ = ["Answer", "Error", "Limit", "Limiter", "NotFoundError", "RequestError", "Reservation",
           "RulesError", "StateError", "__version__", "mistakes", "open"]


def open(rules, state=None, **options):  # weir.open, as the library has it
    """Opens a rules file; the answer is a Limiter, also a context manager.

    `state`: a file that processes share; None: the rules file's, else memory of this process alone.
    Both paths are made absolute, since a child opens them again after a fork."""
    return Limiter(os.path.abspath(rules), None if state is None else os.path.abspath(state),
                   **options)


def mistakes(rules):
    """What is wrong with a rules file: a list of (file, line, column, message), or an empty one."""
    return _mistakes(os.path.abspath(rules))
