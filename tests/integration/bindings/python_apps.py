# SPDX-License-Identifier: Apache-2.0
"""Applications for the servers of test_python_servers.py: RULES and STATE name the files."""

import asyncio
import fcntl
import os
from pathlib import Path

import weir

# Before a server with --preload forks: each worker opens it again by itself.
limiter = weir.open(os.environ["RULES"], os.environ["STATE"], state_size=4 << 20)


def flask_app():
    import flask
    import weir.flask
    app = flask.Flask("app")
    weir.flask.Weir(limiter, app)

    @app.get("/pid")
    def pid():
        return str(os.getpid())

    @app.get("/shared")
    def shared():
        return str(os.getpid())

    @app.get("/slow")
    def slow():
        def chunks():
            yield f"{os.getpid()}\n"
            while True:
                yield "." * 65536

        return flask.Response(chunks())

    return app


def starlette_app():
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route, WebSocketRoute
    import weir.starlette

    async def pid(_):
        return PlainTextResponse(str(os.getpid()))

    class Slow:
        """An answer whose body continues until the client leaves."""

        async def __call__(self, scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b".", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass

    def wait_for_lock():
        with open("held", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH)

    async def busy(_):
        """Works without receiving while the test has a file locked; the test sees when it begins."""
        Path("begun").touch()
        await asyncio.to_thread(wait_for_lock)
        return PlainTextResponse("done")

    async def talk(websocket):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.receive_text()

    app = Starlette(routes=[Route("/pid", pid), Route("/shared", pid), Route("/slow", Slow()),
                            Route("/busy", busy),
                            WebSocketRoute("/slow", talk)])
    app.add_middleware(weir.starlette.Middleware, limiter=limiter)
    return app


def django_app(kind):
    import django
    from django.conf import settings
    from django.http import HttpResponse
    from django.urls import path
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="test",
                       MIDDLEWARE=["weir.django.Middleware",
                                   "django.middleware.common.CommonMiddleware"],
                       WEIR={"limiter": limiter, "on_error": "closed"})
    django.setup()
    globals()["urlpatterns"] = [path(name, lambda request: HttpResponse(str(os.getpid())))
                                for name in ("pid", "shared")]
    if kind == "wsgi":
        from django.core.wsgi import get_wsgi_application
        return get_wsgi_application()
    from django.core.asgi import get_asgi_application
    return get_asgi_application()


app = {"flask": flask_app, "starlette": starlette_app, "django-wsgi": lambda: django_app("wsgi"),
       "django-asgi": lambda: django_app("asgi")}[os.environ["APP"]]()
