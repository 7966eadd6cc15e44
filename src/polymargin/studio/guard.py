"""Who may talk to the studio: the page that it serves itself, with the token that it gave out.

The server listens on the loopback address, which every process and every web page of this machine can reach. So

- the name asked for must be ours (`Host`): a name of somebody else's that leads here gets nothing;
- what a browser says of where a request comes from (`Origin`, `Sec-Fetch-Site`) must be the page itself;
- whatever reads or drives anything needs the token, in a header: no other origin can set it, and cookies would
  go to other ports of this machine as well.
"""

import secrets
from typing import Any

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-polymargin-token"
LARGEST_BODY = 1_000_000
"""Bytes of a request: costs of some hundred classes."""


def new_token() -> str:
    """Return what only the person who started the studio knows."""
    return secrets.token_urlsafe(32)


class Guard:
    """Lets requests of its own page through to `app`, and adds headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, token: str, port: int, script_hash: str):
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        # The report is shown in a frame that inherits this policy, so that its one script is named here.
        policy = (
            f"default-src 'none'; script-src 'self' 'sha256-{script_hash}'; style-src 'self' 'unsafe-inline'; "
            "img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'"
        )
        self.headers = [
            (b"content-security-policy", policy.encode()),
            (b"cache-control", b"no-store"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not."""
        if scope["type"] != "http":
            return  # nothing else is served; the server closes the connection
        refusal = self.refusal(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self.headers]}
            await send(message)

        answer: Any = self.app if refusal is None else PlainTextResponse(refusal[1], refusal[0])
        await answer(scope, receive, send_with_headers)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the words by which a request is refused, None for one that is welcome."""
        given: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        if any(len(given.get(name, ())) > 1 for name in ("host", "origin", TOKEN_HEADER)):
            return 400, "A header is given twice."
        hosts, origins = given.get("host", [""]), given.get("origin", [])
        if hosts[0].lower() not in self.hosts:
            return 403, "This is not the address of the studio."
        if any(origin.lower() not in {f"http://{host}" for host in self.hosts} for origin in origins):
            return 403, "Requests of other pages are refused."
        if any(site not in ("same-origin", "none") for site in given.get("sec-fetch-site", ())):
            return 403, "Requests of other pages are refused."
        if int(given.get("content-length", ["0"])[0] or 0) > LARGEST_BODY or "transfer-encoding" in given:
            return 413, "The request is too large."
        if scope["path"].startswith("/api/"):
            token = given.get(TOKEN_HEADER, [""])[0]
            if not secrets.compare_digest(token.encode("latin-1"), self.token.encode()):
                return 401, "The token of the studio is needed: open the address that the terminal shows."
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, "This can only be read."
        return None
