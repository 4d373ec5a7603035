"""Every action by programs: who may, what is charged, and what whoever attacks gets."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from dataclasses import replace

import pytest
from booking import ABOUT, at_once, gaussian, laplace, log_lines, opened
from jsonschema import Draft202012Validator
from sqlalchemy import text
from web_client import FORM, Client, serving

from dpaudit.base.errors import BudgetExceededError, InputError
from dpaudit.book import (
    BudgetRecord,
    DataSet,
    issue,
    limit_of,
    publish,
    remaining_budgets,
    revoke,
    verify_book,
)
from dpaudit.book.server.api import Ended
from dpaudit.book.server.request_context import Denials

PLAN = laplace(4.0).to_dict()
FILE = """
[plan]
unit = "user"
relation = "add-remove"
trust = "central"
[[invocation]]
mechanism = "gaussian"
sigma = 2.1
sensitivity = 1.0
"""


def wanted(request="1", dataset="visits", plan=PLAN, **more):
    return {"dataset": dataset, "plan": plan, "purpose": "a test", "request": request, **more}


def lines(book, event):
    return [line for row in log_lines(book) if (line := json.loads(row))["event"] == event]


def used(book, dataset="visits"):
    return remaining_budgets(book, dataset)[0].left[0].share


def test_from_a_request_to_its_end(guarded, people, tmp_path):
    made = people["ann"].post("/api/releases", wanted())
    assert (made.status, made.json["status"], made.json["by"]) == (202, "requested", "ann")
    again = people["ann"].post("/api/releases", wanted())
    assert again.json == made.json
    other = people["amy"].post("/api/releases", wanted())
    assert (other.status, other.json["error"]) == (
        400,
        "request '1' was sent with another by; use a new request.",
    )
    refused = people["ann"].post("/api/releases", wanted("2", plan=laplace(0.5).to_dict()))
    assert refused.status == 409
    assert "has too little left; nothing was charged" in refused.json["error"]
    release = made.json["id"]
    approved = people["bob"].post(f"/api/releases/{release}/approve", why="fine")
    assert (approved.status, approved.json["approved"]) == (200, "bob")
    reserved = guarded.reservation(release, by="ann")
    with opened(reserved, tmp_path / "j") as ledger:
        ledger.release(reserved.plan.invocations[0].mechanism, 12345.678)
        ledger.close()
    wrong = people["ann"].post(f"/api/releases/{release}/close", certificate="x" * 10**6)
    assert (wrong.status, "must be the hash of a certificate" in wrong.json["error"]) == (400, True)
    told = {"journal": (tmp_path / "j").read_text(), "certificate": "ab" * 32}
    closed = people["ann"].post(f"/api/releases/{release}/close", told)
    assert (closed.status, closed.json["status"], closed.json["certificate"]) == (
        200,
        "closed",
        "ab" * 32,
    )
    assert people["vic"].get(f"/api/releases/{release}").json == closed.json
    assert people["vic"].post("/api/verify").json["holds"] is True
    assert "12345" not in str(log_lines(guarded))


def test_looking(guarded, people):
    for n in range(4):
        people["ann"].post("/api/releases", wanted(str(n), "sales", gaussian(4.0).to_dict()))
    status = people["vic"].get("/api/status?dataset=sales").json["datasets"]
    assert [each["name"] for each in status] == ["sales"]
    assert status[0]["releases"] == {"reserved": 4}
    assert 0.125 <= status[0]["budgets"][0]["share"] <= 0.1251
    first = people["vic"].get("/api/releases?limit=3").json
    rest = people["vic"].get(f"/api/releases?limit=3&before={first['before']}").json
    found = [each["request"] for each in first["releases"] + rest["releases"]]
    assert (found, rest["before"]) == (["3", "2", "1", "0"], 0)
    assert people["vic"].get("/api/releases?q=NOTHING").json["releases"] == []
    fits = people["vic"].post("/api/fit", dataset="sales", plan=gaussian(2.1).to_dict()).json
    assert (fits["times"], fits["noise"]) == (7, None)
    fits = people["vic"].post("/api/fit", dataset="sales", plan=FILE).json
    assert fits["times"] == 7
    ((_, (name, sigma)),) = fits["noise"].items()
    assert name == "sigma"
    assert 0.5 <= 2 * 0.875 * sigma**2 <= 0.51 * 2  # ρ = 1/(2 σ²) fits once into what is left
    for kind, kept in (("json", '"releases":['), ("csv", "id,made"), ("registry.yaml", "slug")):
        export = people["vic"].get(f"/api/export/{kind}")
        assert export.status == 200
        assert kept in export.text
        assert export.headers["content-disposition"].endswith(f'"releases.{kind}"')


def test_the_document_names_every_action_and_is_one(server):
    document = server.get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    named = {(m.upper(), path) for path, each in document["paths"].items() for m in each}
    assert len(named) == 11
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    closed = [
        (method, path)
        for path, each in document["paths"].items()
        for method, told in each.items()
        if "security" not in told
    ]
    assert closed == [("get", "/api/public")]


ACTIONS = {
    "viewer": [
        ("GET", "/api/status"),
        ("GET", "/api/releases"),
        ("GET", "/api/releases/R7"),
        ("GET", "/api/export/csv"),
        ("POST", "/api/fit"),
        ("POST", "/api/verify"),
    ],
    "analyst": [
        ("POST", "/api/releases"),
        ("POST", "/api/releases/R7/close"),
        ("POST", "/api/releases/R7/deny"),
    ],
    "approver": [("POST", "/api/releases/R7/approve")],
}


def test_nobody_does_what_their_role_may_not(guarded, people, server):
    rank = {"vic": ["viewer"], "ann": ["viewer", "analyst"], "bob": list(ACTIONS)}
    for least, actions in ACTIONS.items():
        for method, path in actions:
            body = None if method == "GET" else wanted()
            assert server.ask(method, path, body).status == 401
            for name, may in rank.items():
                status = people[name].ask(method, path, body).status
                assert (status == 403) is (least not in may), (name, method, path, status)
    barred = lines(guarded, "barred")
    assert {(line["by"], line["what"]) for line in barred} == {
        ("nobody", "sign in"),
        *(("vic", what) for what in ("reserve", "close", "deny", "approve")),
        ("ann", "approve"),
    }
    verify_book(guarded)


def test_tokens_that_do_not_hold(guarded, people, server, tokens, clock):
    secret = issue(guarded, "eve", "approver", by="officer", until="2026-11-23")
    eve = Client(server.port, secret)
    assert eve.get("/api/status").status == 200
    clock.move(days=1)
    revoke(guarded, "vic", by="officer")
    with guarded.reading() as connection:
        hashes = [row.hash for row in connection.execute(text("SELECT hash FROM token"))]
    for forged in (secret, tokens["vic"], "", "x", hashes[0], tokens["bob"][:-1], "é", "'--"):
        answer = Client(server.port).get(
            "/api/status", Authorization=f"Bearer {forged}".encode().decode("latin-1")
        )
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert list(answer.json) == ["error"]
        assert not forged or len(forged) < 3 or forged not in answer.text
    for stated in ("Basic YTpi", "Bearer", tokens["bob"], "bearer  "):
        assert server.get("/api/status", Authorization=stated).status == 401
    assert people["bob"].get("/api/status").status == 200
    written = str(lines(guarded, "barred")) + str(lines(guarded, "token"))
    assert not any(each in written for each in (secret, *tokens.values()))


def test_nobody_approves_what_they_asked_for(guarded, people):
    made = people["bob"].post("/api/releases", wanted()).json
    for _ in range(3):
        assert people["bob"].post(f"/api/releases/{made['id']}/approve").status == 403
    assert [(b["by"], b["what"]) for b in lines(guarded, "barred")] == [("bob", "approve")]
    assert people["ben"].post(f"/api/releases/{made['id']}/approve").status == 200


def test_analysts_leave_the_releases_of_others_alone(guarded, people):
    mine = people["ann"].post("/api/releases", wanted()).json["id"]
    sold = (
        people["ann"]
        .post("/api/releases", wanted("2", "sales", gaussian(4.0).to_dict()))
        .json["id"]
    )
    assert people["amy"].post(f"/api/releases/{mine}/deny", why="no").status == 403
    assert people["amy"].post(f"/api/releases/{sold}/close", abandoned="no").status == 403
    assert (
        people["ann"].post(f"/api/releases/{mine}/deny", why="mistake").json["status"] == "denied"
    )
    assert used(guarded) == 0
    both = people["bob"].post(f"/api/releases/{sold}/close", abandoned="no", withdrawn="no")
    assert both.status == 400
    done = people["bob"].post(f"/api/releases/{sold}/close", withdrawn="no")
    assert (done.status, done.json["ran"]) == (200, "nothing")


def test_requests_that_come_at_once_are_charged_once(guarded, people):
    body, found = wanted(dataset="sales", plan=gaussian(4.0).to_dict()), []
    at_once(*[lambda: found.append(people["ann"].post("/api/releases", body))] * 6)
    assert {answer.json["id"] for answer in found if answer.status == 200} == {found[0].json["id"]}
    assert remaining_budgets(guarded, "sales")[0].releases == {"reserved": 1}


WRONG = [
    (b"", 422, "body of the body is wrong: Field required."),
    (b"{", 422, "its body must be JSON in UTF-8"),
    (b"\xff\xfe", 422, "its body must be JSON in UTF-8"),
    (b"[" * 100_000, 400, "its body must be JSON in UTF-8"),
    (b"[1]", 422, "of the body is wrong"),
    (b'"text"', 422, "of the body is wrong"),
    (json.dumps(wanted() | {"dataset": 7}).encode(), 422, "dataset of the body is wrong"),
    (json.dumps(wanted() | {"by": "bob"}).encode(), 422, "by of the body is wrong"),
    (json.dumps(wanted() | {"plan": [1]}).encode(), 422, "plan.str of the body is wrong"),
    (json.dumps(wanted() | {"plan": {}}).encode(), 400, "plan"),
    (json.dumps(wanted() | {"plan": "x = "}).encode(), 400, "plan is not TOML"),
    (json.dumps(wanted() | {"plan": {"invocations": 3}}).encode(), 400, "invocation"),
    (json.dumps(wanted() | {"purpose": "a\nb"}).encode(), 400, "printable characters"),
    (json.dumps(wanted() | {"purpose": "x" * 500}).encode(), 400, "200 printable"),
    (json.dumps(wanted() | {"request": "\x00"}).encode(), 400, "printable"),
    (json.dumps(wanted() | {"dataset": "../../etc"}).encode(), 404, "does not have"),
    (json.dumps(wanted() | {"period": "ever"}).encode(), 400, "period"),
    (json.dumps(wanted() | {"approved": "me"}).encode(), 400, "leave it out"),
    (b'{"dataset":"\\ud800"}', 422, "body"),
]


def test_wrong_bodies_are_one_sentence(people):
    for body, status, said in WRONG:
        answer = people["ann"].ask("POST", "/api/releases", body, Content_Type="application/json")
        assert (answer.status, list(answer.json)) == (status, ["error"]), (body[:80], answer.text)
        assert said in answer.json["error"]
        assert answer.json["error"].endswith(".")
        assert "Traceback" not in answer.text
        assert len(answer.text) < 700


def test_text_that_no_file_takes_is_refused_and_stops_nobody_else(guarded, people):
    plan = laplace(4.0).to_dict()
    plan["invocations"][0]["at"] = "\ud800"
    asked = wanted("7", "sales", gaussian(4.0).to_dict())
    release = people["ann"].post("/api/releases", asked).json["id"]
    hostile = [
        ("/api/releases", wanted("8", plan=plan)),
        *((f"/api/releases/{release}/close", {name: "\ud800"}) for name in vars(Ended())),
        (f"/api/releases/{release}/deny", {"why": "\ud800"}),
    ]
    for path, body in hostile:
        refused = people["ann"].post(path, body)
        assert refused.status == 400, (body, refused.text)
        assert "ud800" not in refused.text.replace("'\\\\ud800'", "")
    long = guarded.reservation(release, by="ann").plan
    with pytest.raises(InputError, match="certificate is"):
        guarded.close(release, by="ann", certificate="c" * 201)
    with pytest.raises(InputError, match=r"at is .*; it must be a text of at most 300"):
        replace(long.invocations[0], at="x" * 301)


def test_addresses_that_lead_nowhere(people, server, tmp_path):
    (tmp_path / "secret.json").write_text('{"digest": "' + "ab" * 32 + '"}')
    vic = people["vic"]
    for path in (
        "/api/releases/../../etc/passwd",
        "/api/releases/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/releases/R1'--",
        "/api/releases/R1%00",
        "/api/export/..%2fbook.db",
        "/api/export/db",
        "/api/nothing",
        "/api/releases?limit=1e9",
        "/api/releases?limit=100000",
        "/api/releases?before=-1",
        "/api/releases?q=" + "x" * 300,
        "/api/releases?dataset=%00&limit=0",
    ):
        answer = vic.get(path)
        assert answer.status in (400, 404, 422), (path, answer.status)
        assert list(answer.json) == ["error"]
    assert vic.get("/api/releases?dataset=%00").json["releases"] == []
    assert vic.get("/api/releases?q=%25%5C%22_'").json["releases"] == []
    assert vic.ask("DELETE", "/api/releases/R1").status == 405
    assert vic.ask("PUT", "/api/status", b"x").status == 405
    for path in (f"/certificates/{'ab' * 32}", "/static/..%2f..%2fbook.db"):
        assert server.get(path).status in (303, 404)


def test_long_bodies_are_not_read(server, people):
    paths = ("/api/releases", "/api/fit", "/login", "/api/releases/R1/close")
    for client, path, most in (
        *((server, path, 10_000) for path in paths),
        *((people["ann"], path, 256_000) for path in paths[:2]),
        (people["ann"], paths[3], 8_000_000),
    ):
        answer = client.ask("POST", path, b"x" * (most + 1))
        assert answer.status in (401, 413)
        assert client.token is None or answer.status == 413
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    sent = {"Authorization": f"Bearer {people['ann'].token}", "Transfer-Encoding": "chunked"}
    connection.putrequest("POST", "/api/releases")
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        for _ in range(90):
            connection.send(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
    except OSError:
        pass  # it hangs up
    else:
        assert connection.getresponse().status == 413
    connection.close()
    assert server.get("/api/public").status == 200


def test_bodies_that_never_come_are_not_waited_for(server, people, monkeypatch):
    monkeypatch.setattr("dpaudit.book.server.guarding._SECONDS", 0.3)
    for path, kind in (("/api/fit", "application/json"), ("/login", FORM)):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
        head += f"Authorization: Bearer {people['vic'].token}\r\nContent-Length: 9\r\n\r\n1"
        with socket.create_connection(("127.0.0.1", server.port), 20) as raw:
            raw.sendall(head.encode())
            assert raw.recv(100).startswith(b"HTTP/1.1 408")
    slow = people["vic"].get("/api/export/csv")
    assert slow.status == 200


def test_plans_that_take_long_are_refused_soon(guarded, people, monkeypatch):
    for plan in (".".join(["a"] * 30_000) + "=1", "a . " * 200 + "b = 1", "#" * 64_001):
        refused = people["vic"].post("/api/fit", dataset="sales", plan=plan)
        assert refused.status == 400
        assert "dots; nest less deeply" in refused.json["error"] or "at most 64000" in refused.text
    listed = FILE + "# weights " + "0.5, " * 500
    assert people["vic"].post("/api/fit", dataset="sales", plan=listed).status == 200
    monkeypatch.setattr("dpaudit.book.server.request_context._SECONDS", -1.0)
    refused = people["vic"].post("/api/fit", dataset="sales", plan=FILE)
    assert refused.status == 413
    assert "the search for the least noise takes too long here" in refused.json["error"]
    assert people["ann"].post("/api/releases", wanted("9", "sales", plan=FILE)).status == 200


def test_headers_cannot_be_injected(server, people):
    for path in ("/login?next=/x%0d%0aSet-Cookie:%20a=b", "/export/csv%0d%0aX-Evil:%201"):
        answer = server.get(path)
        assert "x-evil" not in answer.headers
        assert "set-cookie" not in answer.headers
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall(
            b"GET /api/status HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n"
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 401")


def test_only_known_names_are_answered(guarded):
    with serving(guarded, hosts=("localhost", "book.example")) as server:
        assert server.get("/public", Host="book.example").status == 200
        for name in ("evil.example", "localhost.evil.example", ""):
            assert server.get("/public", Host=name).status == 400


def test_every_answer_has_its_headers(server, people):
    for answer in (
        server.get("/login"),
        server.get("/nothing"),
        server.get("/api/status"),
        people["vic"].get("/api/status"),
        people["vic"].get("/api/releases/R99"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_what_fails_inside_says_nothing(server, people, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("the salary is 12345")

    monkeypatch.setattr("dpaudit.book.server.api.remaining_budgets", broken)
    answer = people["vic"].get("/api/status")
    assert answer.status == 500
    assert "12345" not in answer.text + caplog.text
    assert "RuntimeError" in caplog.text


def test_a_book_that_does_not_answer(server, people, monkeypatch, caplog):
    def gone(*_, **__):
        raise InputError("book 'postgresql://db.internal' does not answer: no route to 10.0.0.7.")

    monkeypatch.setattr("dpaudit.book.server.api.find", gone)
    answer = people["vic"].get("/api/releases")
    assert answer.status == 503
    assert "internal" not in answer.text
    assert "10.0" not in answer.text
    assert "no route to 10.0.0.7" in caplog.text  # of whoever runs the server


def test_what_is_public_is_what_was_declared(guarded, people, server):
    assert server.get("/api/public").json == []
    people["ann"].post("/api/releases", wanted(purpose="secret plans"))
    publish(guarded, "visits", by="officer")
    (shown,) = server.get("/api/public").json
    assert (shown["name"], shown["closed"]) == ("visits", 0)
    assert shown["budgets"][0]["reached"] == {"epsilon": 0.25}
    for path in ("/api/public", "/public"):
        page = server.get(path).text
        assert not any(each in page for each in ("sales", "ann", "secret plans", "of visits"))


def test_denials_do_not_fill_the_log(guarded, monkeypatch):
    before, now = guarded, [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    denials = Denials(before)
    for n in range(5000):
        denials.record("vic" if n % 2 else "", "reserve", "no")
    assert len(lines(guarded, "barred")) == 2
    now[0] += 61
    denials.record("vic", "reserve", "no")
    assert lines(guarded, "barred")[-1]["times"] == 2500
    for _ in range(400):  # vic uses up a day, and nobody else's
        now[0] += 61
        denials.record("vic", "reserve", "no")
    denials.record("vic", "approve", "no")
    assert len(lines(guarded, "barred")) == 1 + 50 + 1
    for by in ("amy", ""):
        denials.record(by, "approve", "no")
        last = lines(guarded, "barred")[-1]
        assert (last["by"], last["what"], last["times"]) == (by or "nobody", "approve", 1)
    denials.record("amy", "approve", "no")
    denials.flush()
    rest = {line["by"]: line["times"] for line in lines(guarded, "barred")[-3:]}
    assert rest == {"vic": 352, "nobody": 2499, "amy": 1}


def test_a_book_with_many_budgets_is_served(guarded, people):
    guarded.add(DataSet("weekly", *ABOUT, "week"), by="officer")
    made = BudgetRecord("a week", "weekly", limit_of({"epsilon": 1.0}), "week")
    guarded.add(made, by="officer")
    told = wanted("9", "weekly", period="2026-11-16..2026-11-22")
    assert people["ann"].post("/api/releases", told).status == 200
    with pytest.raises(BudgetExceededError):
        guarded.reserve("weekly", laplace(1.0), by="a", purpose="b", period="2026-11-20")
    assert len(people["vic"].get("/api/status").json["datasets"]) == 3


def test_viewers_who_compute_take_no_turn_of_others(guarded, people, monkeypatch):
    begun, go = threading.Semaphore(0), threading.Event()

    def slow(book):
        begun.release()
        assert go.wait(30)
        return verify_book(book)

    monkeypatch.setattr("dpaudit.book.server.request_context.verify_book", slow)
    monkeypatch.setattr("dpaudit.book.server.request_context._WAIT", 0.2)
    made = people["ann"].post("/api/releases", wanted()).json["id"]

    def occupied(name):
        threads = [threading.Thread(target=people[name].post, args=("/api/verify",)) for _ in "12"]
        for each in threads:
            each.start()
            assert begun.acquire(timeout=20)
        return threads

    threads, asked = occupied("vic"), {"dataset": "sales", "plan": gaussian(4.0).to_dict()}
    try:
        busy = people["vic"].post("/api/fit", asked)
        assert (busy.status, "the server is busy" in busy.json["error"]) == (503, True)
        assert people["ann"].post("/api/fit", asked).status == 200
        assert people["bob"].get("/api/export/csv").status == 200
        threads += occupied("amy")
        assert people["ann"].post("/api/fit", asked).status == 503
        assert people["ann"].post("/api/releases", wanted("2", **asked)).status == 200
        assert people["bob"].post(f"/api/releases/{made}/approve").status == 200
    finally:
        go.set()
        for each in threads:
            each.join(30)
