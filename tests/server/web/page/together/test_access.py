"""Who may look at the page: headers, logging in and out, and what a user is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import redis
from starlette.requests import Request

from server.web.page.gatekeeper import Gatekeeper, _inside
from server.web.page.logins import IDLE_S, MAX_LOGINS, Logins
from tests.server.web.page.asking import Asking
from tests.server.web.page.filling import Filled, fill
from tests.support.direct import Direct

SCREENS = (
    "/",
    "/stream?db=0&key=orders",
    "/group?db=0&key=orders&group=kitchen",
    "/letters",
    "/letters?db=0&key=orders:dead",
    "/server",
)


@pytest.fixture(scope="module")
def opened() -> Iterator[Filled]:
    """A server on which the default user has no password."""
    with Filled() as filled:
        fill(filled.client)
        filled.look()
        yield filled


@pytest.fixture(scope="module")
def closed() -> Iterator[Filled]:
    """A server with a password and users."""
    with Filled(web_actions=True) as filled:
        fill(filled.client)
        filled.look()
        setuser = ("ACL", "SETUSER")
        filled.client.execute_command(
            *setuser, "reader", "on", ">secret", "~pay*", "+@read", "+ping"
        )
        filled.client.execute_command(*setuser, "blind", "on", ">secret", "~*", "-@all", "+ping")
        filled.client.execute_command(*setuser, "gone", "off", ">secret", "~*", "+@all")
        filled.client.config_set("requirepass", "hunter2")
        yield filled


# --- headers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [*SCREENS, "/login", "/static/page.js", "/entry", "/value", "/nothing"]
)
def test_no_response_lets_a_browser_run_or_embed_what_is_not_from_here(
    opened: Filled, path: str
) -> None:
    headers = Asking(opened.http).get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    kept = "max-age=3600" if path.startswith("/static") else "no-store"
    assert headers["cache-control"] == kept


def test_scripts_and_styles_have_a_nonce_that_is_new_each_time(opened: Filled) -> None:
    asking, nonces = Asking(opened.http), []
    for _ in range(2):
        answer = asking.get("/")
        nonce = re.search(r"script-src 'nonce-(.*?)'", answer.headers["content-security-policy"])
        assert nonce is not None
        nonces.append(nonce[1])
        tags = re.findall(r"<(?:script|link rel=.stylesheet)[^>]*>", answer.html)
        assert len(tags) == 3
        assert all(f'nonce="{nonce[1]}"' in each for each in tags)
        assert not re.search(r"<[^>]* (?:on\w+|style)=", answer.html)
    assert nonces[0] != nonces[1]


def test_everything_that_a_screen_loads_is_from_here(opened: Filled) -> None:
    asking = Asking(opened.http)
    for path in re.findall(r'(?:src|href)="(/static/[^"]*)"', asking.get("/").html):
        assert asking.get(path).status == 200
    assert "//" not in " ".join(re.findall(r'(?:src|href)="([^"]*)"', asking.get("/").html))


@pytest.mark.parametrize("name", ["../document.py", "nothing.js", "..%2fdocument.py"])
def test_other_files_are_not_served(opened: Filled, name: str) -> None:
    assert Asking(opened.http).get(f"/static/{name}").status == 404


# --- without a password ----------------------------------------------------------------------


def test_without_a_password_nobody_has_to_log_in(opened: Filled) -> None:
    for path in SCREENS:
        assert Asking(opened.http).get(path).status == 200


def test_a_name_that_a_stranger_may_have_made_to_lead_here_is_refused(opened: Filled) -> None:
    asking = Asking(opened.http)
    assert asking.get("/", Host="evil.example:9121").status == 403
    assert asking.get("/", Host="localhost:9121").status == 200
    opened.client.config_set("web-hosts", "Evil.example")
    assert asking.get("/", Host="evil.example:9121").status == 200
    opened.client.config_set("web-hosts", "")


def test_the_page_can_be_turned_off(opened: Filled) -> None:
    opened.client.config_set("web-page", "no")
    assert Asking(opened.http).get("/").status == 404
    assert Asking(opened.http).get("/metrics").status == 200
    opened.client.config_set("web-page", "yes")


# --- with one --------------------------------------------------------------------------------


def test_with_a_password_every_screen_asks_for_it(closed: Filled) -> None:
    asking = Asking(closed.http)
    for path in (*SCREENS, "/events", "/nothing"):
        answer = asking.get(path)
        assert (answer.status, answer.html) == (303, "")
        assert answer.headers["location"].startswith("/login?next=%2F")
    assert asking.post("/act", []).headers["location"] == "/login?next=%2F"
    assert "kitchen" not in asking.get("/login").html


def test_a_part_of_a_screen_leads_to_the_login_as_a_whole(closed: Filled) -> None:
    answer = Asking(closed.http).get("/server", X_Part="1")
    assert (answer.status, answer.headers["x-login"]) == (401, "/login?next=%2Fserver")


def test_a_login_is_a_cookie_that_only_this_server_gets(closed: Filled) -> None:
    asking = Asking(closed.http)
    answer = asking.log_in("default", "hunter2")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"penstock-{closed.http}=")
    for word in ("HttpOnly", "Secure", "SameSite=strict", "Path=/"):
        assert word in cookie
    assert asking.get("/").status == 200


@pytest.mark.parametrize(
    ("user", "password"),
    [("default", "wrong"), ("default", ""), ("nobody", "hunter2"), ("gone", "secret")],
)
def test_a_wrong_login_is_refused_and_noted(closed: Filled, user: str, password: str) -> None:
    asking = Asking(closed.http)
    closed.client.acl_log_reset()
    answer = asking.log_in(user, password)
    assert answer.status == 401
    assert "Wrong name or password" in answer.text
    assert asking.cookies == {}
    (noted,) = closed.client.acl_log()
    assert (noted["reason"], noted["object"], noted["username"]) == ("auth", "page", user)


def test_a_login_beyond_the_limit_of_a_user_says_which_limit_that_is(closed: Filled) -> None:
    asking = Asking(closed.http)
    server = closed.penstock
    with redis.Redis(server.host, server.port, username="reader", password="secret") as connected:
        connected.ping()
        closed.client.config_set("user-max-connections", "0 reader=1")
        try:
            answer = asking.log_in("reader", "secret")
        finally:
            closed.client.config_set("user-max-connections", "0")
    assert answer.status == 403
    assert "may have no more than 1 connections (user-max-connections)" in answer.text
    assert asking.cookies == {}


def test_logging_out_ends_the_login_on_the_server(closed: Filled) -> None:
    asking = Asking(closed.http)
    asking.log_in("default", "hunter2")
    kept = dict(asking.cookies)
    token = re.search(r'name="csrf" value="(.*?)"', asking.get("/").html)
    assert token is not None
    assert asking.post("/logout", []).status == 403
    assert asking.post("/logout", [("csrf", token[1])]).status == 303
    assert asking.cookies == {}
    asking.cookies = kept
    assert asking.get("/").status == 303


def test_a_form_of_another_site_does_not_log_in(closed: Filled) -> None:
    fields = [("user", "default"), ("password", "hunter2")]
    asking = Asking(closed.http)
    assert asking.post("/login", fields, Origin="http://evil.example").status == 403
    assert asking.post("/login", fields, Sec_Fetch_Site="cross-site").status == 403
    assert asking.post("/login", fields, Content_Type="text/plain").status == 400
    assert asking.post("/login", [("user", "x" * 70_000)]).status == 400
    assert asking.post_text("/login", "user=\N{SNOWMAN}").status == 400
    assert asking.post("/login", fields, Origin=f"http://127.0.0.1:{closed.http}").status == 303


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("/server", "/server"),
        ("/stream?db=0&key=a", "/stream?db=0&key=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("", "/"),
        ("/a\nb", "/"),
    ],
)
def test_a_login_leads_to_no_other_site(address: str, inside: str) -> None:
    assert _inside(address) == inside


# --- rights ----------------------------------------------------------------------------------


def test_a_user_sees_the_streams_of_its_own(closed: Filled) -> None:
    asking = Asking(closed.http)
    asking.log_in("reader", "secret")
    overview = asking.get("/")
    assert "payments" in overview.text
    assert "orders" not in overview.text
    assert "kitchen" not in overview.text
    assert asking.get("/stream?db=0&key=payments").status == 200
    refused = asking.get("/stream?db=0&key=orders")
    assert refused.status == 403
    assert "Your user may not run XINFO STREAM on this key." in refused.text
    assert asking.get("/group?db=0&key=orders&group=kitchen").status == 403
    assert asking.get("/consumer?db=0&key=orders&group=kitchen&name=ann").status == 403
    for path in ("/entry", "/value", "/export"):
        assert asking.get(f"{path}?db=0&key=orders&id=1-0").status == 403
    assert asking.get("/letters?db=0&key=orders:dead").status == 403
    assert "orders:dead" not in asking.get("/letters").text


def test_a_user_sees_of_the_server_what_its_commands_tell(closed: Filled) -> None:
    asking = Asking(closed.http)
    asking.log_in("reader", "secret")
    parts = {"clients": "CLIENT LIST", "files": "INFO", "slow": "SLOWLOG GET", "denied": "ACL LOG"}
    for tab, command in parts.items():
        text = asking.get(f"/server?tab={tab}").text
        assert f"Your user may not run {command}." in text
        assert "127.0.0.1" not in text
    assert "memory and files are not shown" in asking.get("/server").text


def test_a_user_without_commands_sees_nothing(closed: Filled) -> None:
    asking = Asking(closed.http)
    asking.log_in("blind", "secret")
    assert "Your user may not see any stream" in asking.get("/").text
    assert asking.get("/stream?db=0&key=payments").status == 403


def test_parts_of_a_screen_are_missing_that_the_user_may_not_see(closed: Filled) -> None:
    closed.client.execute_command(
        "ACL", "SETUSER", "partly", "on", ">secret", "~*", "+xinfo|stream", "+xinfo|groups"
    )
    asking = Asking(closed.http)
    asking.log_in("partly", "secret")
    stream = asking.get("/stream?db=0&key=orders").text
    assert "Your user may not run XRANGE." in stream
    assert "cocoa" not in stream
    group = asking.get("/group?db=0&key=orders&group=kitchen").text
    assert "Your user may not run XINFO CONSUMERS." in group
    assert "Your user may not run XPENDING." in group
    assert "ann" not in group
    closed.client.execute_command("ACL", "SETUSER", "partly", "+xpending", "-xinfo|groups")
    assert "Your user may not run XINFO GROUPS." in asking.get("/stream?db=0&key=orders").text
    closed.client.execute_command("ACL", "SETUSER", "partly", "+xinfo|groups")
    group = asking.get("/group?db=0&key=orders&group=kitchen").text
    assert "not for your user" in group
    assert "cocoa" not in group


def test_rights_that_are_taken_are_gone_at_once(closed: Filled) -> None:
    closed.client.execute_command("ACL", "SETUSER", "brief", "on", ">secret", "~*", "+@all")
    asking = Asking(closed.http)
    asking.log_in("brief", "secret")
    assert asking.get("/stream?db=0&key=orders").status == 200
    closed.client.execute_command("ACL", "SETUSER", "brief", "resetkeys", "~pay*")
    assert asking.get("/stream?db=0&key=orders").status == 403
    closed.client.execute_command("ACL", "DELUSER", "brief")
    assert asking.get("/").status == 303


# --- logins ----------------------------------------------------------------------------------


def logins() -> tuple[Logins, list[float], Direct]:
    direct, now = Direct(), [0.0]
    direct.client().send("ACL", "SETUSER", "ann", "on", ">one", ">two", "+@all", "~*")
    return Logins(direct.server.state.users, lambda: now[0]), now, direct


def test_a_login_ends_when_it_is_not_used() -> None:
    them, now, direct = logins()
    user = direct.server.state.users.get(b"ann")
    assert user is not None
    token = them.add(user, b"one")
    now[0] += IDLE_S
    assert them.find(token) is not None
    now[0] += IDLE_S + 1
    assert them.find(token) is None
    assert them.find("") is None


@pytest.mark.parametrize(
    ("command", "stays"),
    [
        (("ACL", "SETUSER", "ann", "<one"), False),
        (("ACL", "SETUSER", "ann", "<two"), True),
        (("ACL", "SETUSER", "ann", "off"), False),
        (("ACL", "SETUSER", "ann", "resetpass"), False),
        (("ACL", "SETUSER", "ann", "nopass"), True),
        (("ACL", "DELUSER", "ann"), False),
    ],
)
def test_a_login_ends_with_the_password_that_it_was_made_with(
    command: tuple[str, ...], stays: bool
) -> None:
    them, _, direct = logins()
    user = direct.server.state.users.get(b"ann")
    assert user is not None
    token = them.add(user, b"one")
    direct.client().send(*command)
    assert (them.find(token) is not None) is stays


def test_there_are_not_more_logins_than_that() -> None:
    them, _, direct = logins()
    user = direct.server.state.users.get(b"ann")
    assert user is not None
    tokens = [them.add(user, b"one") for _ in range(MAX_LOGINS + 1)]
    assert len(them) == MAX_LOGINS
    assert them.find(tokens[0]) is None
    assert them.find(tokens[1]) is not None


def test_protected_mode_keeps_other_hosts_from_the_page() -> None:
    def status(host: str | None) -> int:
        client = None if host is None else (host, 50_000)
        scope = {"type": "http", "headers": [(b"host", b"10.0.0.1")], "client": client}
        refusal = Gatekeeper(direct.server.services).refusal(Request(scope))
        return 200 if refusal is None else refusal.status_code

    direct = Direct()
    found = [status(host) for host in ("10.0.0.2", "127.0.0.1", "::1", "no address", None)]
    assert found == [403, 200, 200, 403, 403]
    direct.client().send("CONFIG", "SET", "protected-mode", "no")
    assert status("10.0.0.2") == 200
    direct.client().send("CONFIG", "SET", "protected-mode", "yes", "requirepass", "x")
    assert status("10.0.0.2") == 200
