# SPDX-License-Identifier: Apache-2.0
"""Flask: limits for a whole application, or for single views.

    guard = weir.flask.Weir(weir.open("weir.yaml"))
    guard.init_app(app)                # every request

    @app.post("/login")
    @guard.limit(cost=2)               # or this view only
    def login(): ...

flask.g.weir_answer is the weir.Answer of the request.
"""

import functools

import flask

from weir import wsgi
from weir._guard import Guard, drive, wait_by_asgiref

__all__ = ["Weir"]


class Weir:
    """The options are those of Guard; its functions are called with flask.request, and may be coroutine
    functions where asgiref is installed, as views may. on_limited may return anything that a view may
    return."""

    def __init__(self, limiter, app=None, *, max_delay=10.0, **options):
        self.limiter = limiter
        self.options = {"max_delay": max_delay, **options}
        self.guard = self._guard()
        if app is not None:
            self.init_app(app)

    def _guard(self, **options):
        guard = Guard(self.limiter, **{**self.options, **options})
        guard.wait = wait_by_asgiref
        return guard

    def init_app(self, app):
        """Decides every request of the application, before its view."""
        app.before_request(lambda: self._before(self.guard))
        app.teardown_request(_end)

    def limit(self, view=None, **options):
        """Decides the requests of one view. The options are added to those of this object."""
        if view is not None:
            return self._wrap(view, self.guard)
        guard = self._guard(**options)
        return lambda function: self._wrap(function, guard)

    def _wrap(self, view, guard):
        @functools.wraps(view)
        def limited(*arguments, **named):
            denial = self._before(guard)
            if denial is not None:
                return denial
            try:
                return flask.current_app.ensure_sync(view)(*arguments, **named)
            except BaseException as error:
                _end(error)
                raise

        return limited

    @staticmethod
    def _before(guard):
        """None, or what answers a request that does not pass."""
        request = flask.request._get_current_object()
        verdict = drive(wsgi.deciding(guard, request.environ, request), guard.wait)
        flask.g.weir_answer = verdict.answer
        wsgi.wait(verdict)
        response = drive(guard.limiting(request, verdict), guard.wait)
        if response is None and not verdict.passes:
            headers, body = verdict.denial
            return flask.Response(body, verdict.status, headers)

        @flask.after_this_request
        def after(answer):
            for name, value in verdict.headers:
                answer.headers.add(name, value)
            if verdict.open:
                flask.g.pop("weir_verdicts", None)
                answer.call_on_close(functools.partial(verdict.finish, answer.status_code))
            return answer

        if verdict.open:
            flask.g.setdefault("weir_verdicts", []).append(verdict)
        return response


def _end(error):
    """A request ends without a response: an exception has left its view."""
    status = getattr(error, "code", None)
    for verdict in flask.g.pop("weir_verdicts", ()):
        verdict.finish(status if isinstance(status, int) else 500)
