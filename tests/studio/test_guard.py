"""Nobody but the studio's own page, with the token, reads or drives anything."""

import socket

import pytest

PATHS = [
    ("GET", "/api/overview"),
    ("GET", "/api/runs"),
    ("GET", "/api/runs/1"),
    ("GET", "/api/runs/1/summary"),
    ("GET", "/api/runs/1/report"),
    ("GET", "/api/runs/1/predictions"),
    ("GET", "/api/runs/1/variables"),
    ("GET", "/api/runs/1/export/csv"),
    ("GET", "/api/runs/1/model"),
    ("GET", "/api/runs/1/costs"),
    ("POST", "/api/check"),
    ("POST", "/api/reading"),
    ("POST", "/api/train"),
    ("POST", "/api/runs/1/cancel"),
]
STATIC = ["/", "/base.css", "/studio.css", "/api.js", "/columns.js", "/training.js", "/results.js", "/studio.js"]


def test_every_route_of_the_application_is_listed_here(client):
    app = client.studio.server.config.app.app
    routes = {route.path.replace("{number:int}", "1").replace("{kind}", "csv") for route in app.routes}
    assert routes == {path for _, path in PATHS} | set(STATIC)


@pytest.mark.parametrize("token", [None, "", "x", "ü"], ids=repr)
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_the_token_nothing_is_read_or_driven(client, method, path, token):
    status, _, content = client.request(method, path, {} if method == "POST" else None, token=token)
    assert status == 401
    assert b"trees" not in content
    assert client.studio.session.runs == []


def test_parts_of_the_token_and_other_places_for_it_do_not_do(client):
    token = client.studio.token
    assert len(token) >= 43  # 256 random bits
    for wrong in (token[:-1], token + "x", token.lower(), f" {token}x"):
        assert client.request("GET", "/api/overview", token=wrong)[0] == 401
    assert client.request("GET", f"/api/overview?token={token}", token=None)[0] == 401
    cookie = {"Cookie": f"token={token}; polymargin-token={token}"}
    assert client.request("GET", "/api/overview", token=None, **cookie)[0] == 401


@pytest.mark.parametrize("path", ["/", "/studio.js", "/api/overview"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""]
)
def test_another_name_that_leads_here_gets_nothing(client, path, host):
    host = host.format(port=client.studio.port)
    assert client.request("GET", path, Host=host)[0] in (400, 403)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "file://", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/overview"), ("POST", "/api/train")])
def test_pages_of_other_origins_are_refused_even_with_the_token(client, method, path, origin, plan):
    origin = origin.format(port=client.studio.port)
    status, headers, _ = client.request(method, path, plan if method == "POST" else None, Origin=origin)
    assert status == 403
    assert not any(name.lower().startswith("access-control") for name in headers)
    assert client.studio.session.runs == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_the_browser_says_of_other_sites_is_believed(client, site):
    assert client.request("GET", "/", Sec_Fetch_Site=site)[0] == 403
    assert client.request("GET", "/api/overview", Sec_Fetch_Site=site)[0] == 403


def test_a_preflight_of_another_origin_is_not_answered(client):
    status, headers, _ = client.request(
        "OPTIONS",
        "/api/overview",
        token=None,
        Origin="http://evil.example",
        Access_Control_Request_Method="GET",
        Access_Control_Request_Headers="x-polymargin-token",
    )
    assert status == 403
    assert not any(name.lower().startswith("access-control") for name in headers)


def test_its_own_page_is_let_in(client):
    port = client.studio.port
    for host in ("127.0.0.1", "localhost"):
        origin = f"http://{host}:{port}"
        given = {"Host": f"{host}:{port}", "Origin": origin, "Sec_Fetch_Site": "same-origin"}
        assert client.request("GET", "/api/overview", **given)[0] == 200


@pytest.mark.parametrize("path", STATIC)
def test_what_needs_no_token_says_nothing_of_the_file(client, path):
    status, headers, content = client.request("GET", path, token=None)
    assert status == 200
    assert b"trees" not in content
    assert client.studio.token.encode() not in content
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path", ["/../session.py", "/%2e%2e/guard.py", "/page.html", "/studio/guard.py", "//etc/passwd"]
)
def test_no_other_file_is_served(client, path):
    assert client.request("GET", path)[0] == 404


def test_a_header_given_twice_and_a_body_too_large_are_refused(client):
    with socket.create_connection(("127.0.0.1", client.studio.port), 10) as raw:
        host = f"127.0.0.1:{client.studio.port}"
        raw.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n".encode())
        assert b" 400 " in raw.recv(1000)
    assert client.request("POST", "/api/check", {"target": "x" * 1_100_000})[0] == 413


def test_it_listens_on_the_loopback_address_alone(client):
    assert client.studio.socket.getsockname()[0] == "127.0.0.1"


def test_websockets_are_not_served(client):
    status, _, _ = client.request(
        "GET",
        "/api/overview",
        token=None,
        Connection="Upgrade",
        Upgrade="websocket",
        Sec_WebSocket_Version="13",
        Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==",
    )
    assert status == 401
