"""The studio's server: a handful of routes, on the loopback address alone."""

import socket
import tempfile
import webbrowser
from collections.abc import Awaitable, Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from polymargin.cli._terminal import describe
from polymargin.cli.names import Problems
from polymargin.report.page import script_hash
from polymargin.studio.guard import Guard, new_token
from polymargin.studio.session import Busy, Session, Unknown

LOOPBACK = "127.0.0.1"
STATIC = {
    "": ("studio", "page.html", "text/html"),
    "base.css": ("report", "page.css", "text/css"),
    "studio.css": ("studio", "studio.css", "text/css"),
    "api.js": ("studio", "api.js", "text/javascript"),
    "columns.js": ("studio", "columns.js", "text/javascript"),
    "training.js": ("studio", "training.js", "text/javascript"),
    "results.js": ("studio", "results.js", "text/javascript"),
    "studio.js": ("studio", "studio.js", "text/javascript"),
}
"""All that can be had without the token: the page, without anything about the file."""

EXPORTS = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "excel": ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "parquet": ("parquet", "application/vnd.apache.parquet"),
}
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(session: Session, token: str, port: int) -> Guard:
    """Return the application that serves a session to whoever has the token."""
    app = Starlette(
        routes=[
            *(Route(f"/{name}", _static(*where)) for name, where in STATIC.items()),
            Route("/api/overview", _answer(lambda request, body: session.overview())),
            Route("/api/reading", _answer(lambda request, body: session.read_again(body)), methods=["POST"]),
            Route("/api/check", _answer(lambda request, body: session.check(body)), methods=["POST"]),
            Route("/api/train", _answer(lambda request, body: session.train(body).progress()), methods=["POST"]),
            Route("/api/runs", _answer(lambda request, body: [_listed(session, run) for run in session.runs])),
            Route("/api/runs/{number:int}", _answer(lambda request, body: _run(session, request).progress())),
            Route(
                "/api/runs/{number:int}/cancel",
                _answer(lambda request, body: _cancelled(_run(session, request))),
                methods=["POST"],
            ),
            Route("/api/runs/{number:int}/summary", _answer(lambda r, body: _outcome(session, r).summary)),
            Route("/api/runs/{number:int}/variables", _answer(lambda r, body: _outcome(session, r).variables)),
            Route("/api/runs/{number:int}/predictions", _answer(lambda r, body: _predictions(session, r))),
            Route("/api/runs/{number:int}/report", _answer(lambda r, body: _report(session, r))),
            Route("/api/runs/{number:int}/export/{kind}", _answer(lambda r, body: _exported(session, r))),
            Route("/api/runs/{number:int}/model", _answer(lambda r, body: _model(session, r))),
            Route("/api/runs/{number:int}/costs", _answer(lambda r, body: _costs(session, r))),
        ]
    )
    return Guard(app, token, port, script_hash())


def _static(package: str, name: str, kind: str) -> Endpoint:
    content = (files(f"polymargin.{package}") / name).read_text("utf-8")

    async def serve(request: Request) -> Response:
        return Response(content, media_type=kind)

    return serve


def _answer(act: Callable[[Request, Any], Any]) -> Endpoint:
    """Return the endpoint that does this in a thread of its own, and puts its errors into words."""

    async def endpoint(request: Request) -> Response:
        try:
            body = await request.json() if request.method == "POST" else None
        except ValueError:
            return _problem("the request is no JSON.", 400)
        try:
            answer = await run_in_threadpool(act, request, body)
        except Busy as error:
            return _problem(str(error), 409)
        except Unknown as error:
            return _problem(str(error.args[0]), 404)
        except Problems as error:
            return JSONResponse({"problems": error.problems}, 422)
        except Exception as error:  # whatever it is, the page shows it and the studio goes on
            return _problem(describe(error), 422 if isinstance(error, ValueError) else 500)
        return answer if isinstance(answer, Response) else JSONResponse(answer)

    return endpoint


def _problem(words: str, status: int) -> JSONResponse:
    return JSONResponse({"problems": [words]}, status)


def _run(session: Session, request: Request) -> Any:
    return session.run(request.path_params["number"])


def _outcome(session: Session, request: Request) -> Any:
    return session.outcome(request.path_params["number"])


def _cancelled(run: Any) -> dict[str, Any]:
    run.cancel()
    return run.progress()


def _listed(session: Session, run: Any) -> dict[str, Any]:
    """Return a line about a run for the list of all."""
    said = {"number": run.number, "state": run.state, "method": str(run.plan.method)}
    said["costs"] = run.plan.costs is not None
    if run.state != "running" and run.trained is not None:
        summary = session.outcome(run.number).summary
        said |= {"error": summary["error"], "cost": summary["cost"], "settings": summary["settings"]}
    return said


def _predictions(session: Session, request: Request) -> Any:
    asked = request.query_params
    return _outcome(session, request).page_of(
        offset=max(int(asked.get("offset", 0)), 0),
        sort=asked.get("sort"),
        descending=asked.get("descending") == "1",
        wrong=asked.get("wrong") == "1",
        held_out=asked.get("held_out") == "1",
        text=asked.get("text", ""),
    )


def _report(session: Session, request: Request) -> Response:
    return Response(_outcome(session, request).report, media_type="text/html")


def _exported(session: Session, request: Request) -> Response:
    kind = request.path_params["kind"]
    if kind not in EXPORTS:
        raise Unknown(f"predictions are written as {', '.join(EXPORTS)}, not as {kind}.")
    return Response(_outcome(session, request).exported(kind), media_type=EXPORTS[kind][1])


def _model(session: Session, request: Request) -> Response:
    return Response(_outcome(session, request).model(), media_type="application/octet-stream")


def _costs(session: Session, request: Request) -> Response:
    return PlainTextResponse(_outcome(session, request).cost_file())


class Studio:
    """A session being served; `address` is where, and holds the token."""

    def __init__(self, session: Session, port: int = 0):
        self.session, self.token = session, new_token()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.socket.bind((LOOPBACK, port))
        except OSError as error:
            raise ValueError(f"--port {port} cannot be used: {error.strerror}.") from error
        self.socket.listen()  # whoever is quicker than the server waits
        self.port = int(self.socket.getsockname()[1])
        app = make_app(session, self.token, self.port)
        self.server = uvicorn.Server(
            uvicorn.Config(
                app, log_level="warning", lifespan="off", ws="none", proxy_headers=False, server_header=False
            )
        )

    @property
    def address(self) -> str:
        """Where the studio is; what follows # stays in the browser, and is in no request or log."""
        return f"http://{LOOPBACK}:{self.port}/#token={self.token}"

    def serve(self) -> None:
        """Serve until Ctrl-C or `stop`."""
        try:
            self.server.run(sockets=[self.socket])
        finally:
            self.session.close()
            self.socket.close()

    def stop(self) -> None:
        """End serving soon."""
        self.server.should_exit = True


def open_browser(address: str, folder: Path) -> bool:
    """Open the studio by way of a file that only this user can read: command lines are seen by all users."""
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".html", delete=False, encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">')
    return webbrowser.open(Path(file.name).as_uri())
