"""Pages of the server: what they show to whom."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from axe import faults
from booking import ABOUT, PLAN_FILE, ask, filled, gaussian, laplace
from chromium import binary, browser
from pages import Page
from web_client import FORM, Client

from dpaudit.base import files
from dpaudit.base.errors import BudgetExceededError, InputError, TamperedError
from dpaudit.book import (
    Book,
    BudgetRecord,
    DataSet,
    decide,
    issue,
    limit_of,
    publish,
    record_refusal,
    remaining_budgets,
    revoke,
    verify_book,
)
from dpaudit.book.server import compliance
from dpaudit.book.server.budget_history import BudgetHistory, Point, drawing, thinned
from dpaudit.book.server.certificate_store import CertificateStore
from dpaudit.book.server.compliance import write
from dpaudit.book.server.request_context import shelf_of
from dpaudit.book.server.searching import find
from dpaudit.certificate import Claim, SubjectRecord, certify

# -- the pages as people see them: with a session, without scripts, on paper and to screen read ----


EVIL = "<script>alert(1)</script>\"'&amp;"


@pytest.fixture
def visitors(server, tokens):
    """Browsers, one for each person."""
    return {name: Client(server.port).sign_in(token) for name, token in tokens.items()}


def hidden(page, name):
    return re.search(rf'name="{name}" value="([^"]*)"', page)[1]


def test_a_release_is_calculated_reserved_and_approved_without_a_script(guarded, visitors):
    ann = visitors["ann"]
    page = ann.send("/calculator", dataset="visits", plan=PLAN_FILE.replace("\n", "\r\n")).text
    assert "U+000D" not in page
    assert "This plan fits 4 ×." in Page(page).text
    assert "scale = 1." in Page(page).text
    given = {name: unescape(hidden(page, name)) for name in ("dataset", "plan", "request")}
    told = {**given, "purpose": EVIL}
    made = ann.send("/reserve", **told)
    assert made.status == 303
    assert ann.send("/reserve", **told).headers["location"] == made.headers["location"]
    release = made.headers["location"]
    assert "Withdraw" in ann.get(release).text
    assert "/approve" not in ann.get(release).text
    assert ann.send(f"{release}/approve").status == 403
    bob = visitors["bob"]
    assert release in bob.get("/").text
    assert bob.send(f"{release}/approve", why="fine").status == 303
    assert "bob" in Page(bob.get(release).text).text
    assert bob.send(f"{release}/abandon", why="").status == 400
    assert ann.send(f"{release}/abandon", why="not needed").status == 303
    denied = ann.send("/reserve", **(told | {"request": "2"})).headers["location"]
    assert bob.send(f"{denied}/deny", why="no").status == 303
    assert "denied" in Page(bob.get("/releases?status=denied").text).text
    verify_book(guarded)


def test_an_answer_that_is_no(visitors):
    ann = visitors["ann"]
    wrong = ann.send("/calculator", dataset="visits", plan=EVIL)
    assert wrong.status == 400
    assert "plan is not TOML" in Page(wrong.text).text
    assert EVIL in Page(wrong.text).text
    dear = PLAN_FILE.replace("4.0", "0.5")
    page = ann.send("/calculator", dataset="visits", plan=dear).text
    assert "This plan does not fit." in page
    assert 'action="/reserve"' not in page
    told = {"dataset": "visits", "plan": dear, "purpose": "x", "request": "1"}
    assert ann.send("/reserve", **told).status == 409
    viewer = visitors["vic"].send("/calculator", dataset="visits", plan=PLAN_FILE).text
    assert 'action="/reserve"' not in viewer
    assert visitors["vic"].send("/reserve", **told).status == 403


def test_forms_of_others_do_nothing(guarded, visitors, server, tokens):
    ann, told = (
        visitors["ann"],
        {"dataset": "visits", "plan": PLAN_FILE, "purpose": "x", "request": "1"},
    )
    for proof in ("", "x", visitors["bob"].proof):
        assert ann.send("/reserve", proof=proof, **told).status == 403
    for sent in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert ann.send("/reserve", sent, **told).status == 403
        refused = server.send("/login", sent, token=tokens["bob"])
        assert (refused.status, "set-cookie" in refused.headers) == (401, False)
    assert list(guarded.releases()) == []
    same = {"Origin": f"http://127.0.0.1:{server.port}", "Sec-Fetch-Site": "same-origin"}
    assert ann.send("/reserve", same, **told).status == 303
    api = Client(server.port, cookies=ann.cookies)
    assert api.get("/api/status").status == 401  # a cookie is no token: no other site can use it


def test_sessions(guarded, visitors, server, tokens):
    answer = server.send("/login", token=tokens["vic"])
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert tokens["vic"] not in cookie
    vic = visitors["vic"]
    assert vic.get("/").status == 200
    revoke(guarded, "vic", by="officer")
    assert vic.get("/").headers["location"] == "/login?next=/"
    bob = visitors["bob"]
    assert bob.send("/logout").status == 303
    assert bob.get("/").status == 303
    ann = visitors["ann"]
    issue(guarded, "ann", "viewer", by="officer")  # which replaces the one of her session
    assert ann.get("/").status == 303
    for forged in ("", "x", "é", ";", tokens["vic"]):
        refused = server.send("/login", token=forged)
        assert refused.status == 401
        assert 'role="alert"' in refused.text
    for where in ("//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nb", "x"):
        answer = server.send("/login", token=tokens["amy"], next=where)
        assert answer.headers["location"] == "/"
    assert server.send("/login", token=tokens["amy"], next="/releases").status == 303


def test_forms_that_are_none(visitors):
    ann = visitors["ann"]
    for body, kind in (
        (b"proof=%ff%fe", FORM),
        (b"\xff", FORM),
        (b"{}", "application/json"),
        (b"a=1&" * 100, FORM),
    ):
        answer = ann.ask("POST", "/calculator", body, Content_Type=kind)
        assert answer.status == 400
        assert 'role="alert"' in answer.text
    for path in (
        "/releases?before=x",
        "/releases/../../etc/passwd",
        "/releases/R1%27",
        "/releases/R99",
        "/report.html?first=x&last=y",
        "/report.exe?first=2026-01-01&last=2026-01-02",
        "/export/db",
        "/certificates/..%2f..%2fbook.db",
        f"/certificates/{'ab' * 32}",
        "/nothing",
    ):
        answer = ann.get(path)
        assert answer.status in (400, 404), path
        assert "Traceback" not in answer.text


def test_names_are_text_wherever_they_stand(guarded, visitors, server):
    guarded.add(DataSet(EVIL, *ABOUT), by=EVIL)
    guarded.add(BudgetRecord(EVIL + "!", EVIL, limit_of({"rho": 1.0})), by="officer")
    made = guarded.reserve(EVIL, gaussian(4.0), by=EVIL, purpose=EVIL, request=EVIL)
    publish(guarded, EVIL, by="officer")
    guarded.close(made.id, by=EVIL, abandoned=EVIL)
    vic = visitors["vic"]
    for path in (
        "/",
        "/releases?q=script",
        f"/releases/{made.id}",
        "/calculator",
        "/report",
        "/report.html?first=2026-01-01&last=2026-12-31",
        "/public",
    ):
        page = vic.get(path)
        assert page.status == 200
        assert "<script" not in page.text
        assert not [tag for tag, facts in Page(page.text).tags if tag == "script"]
        assert not [1 for _, facts in Page(page.text).tags if any(f[:2] == "on" for f in facts)]
        assert "style=" not in page.text
        assert EVIL in Page(page.text).text + page.text.replace("&#34;", '"')
    csv = vic.get("/export/csv")
    assert csv.headers["content-type"].startswith("text/csv")


def test_certificates_are_found_by_their_hash(guarded, visitors, tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.book.server.certificate_store._PAUSE", 0.0)
    made = guarded.reserve("sales", gaussian(4.0), by="ann", purpose="x")
    found = certify(gaussian(4.0), claim=Claim(5.0, 1e-6), subject=SubjectRecord("x")).to_dict()
    digest = found["digest"]
    guarded.close(made.id, by="ann", certificate=digest)
    vic = visitors["vic"]
    assert "its file is not here" in vic.get(f"/releases/{made.id}").text
    (tmp_path / "shelf" / "a.json").write_text(files.pretty_json(found))
    page = vic.get(f"/certificates/{digest}")
    assert page.status == 200
    assert "sandbox" in page.headers["content-security-policy"]
    assert vic.get(f"/certificates/{digest}.json").json == found
    assert f"/certificates/{digest}" in vic.get(f"/releases/{made.id}").text


PAGES = ("/", "/releases", "/calculator", "/report", "/check", "/public", "/nothing")


@pytest.mark.skipif(binary() is None, reason="there is no Chromium on the PATH")
def test_a_browser_and_a_screen_reader_can_use_every_page(guarded, visitors, server, url):
    if url.startswith("postgresql"):
        pytest.skip("pages look the same whatever the database")
    ann = visitors["ann"]
    publish(guarded, "visits", by="officer")
    made = guarded.reserve("visits", laplace(4.0), by="ann", purpose=EVIL)
    printed = "/report.html?first=2026-01-01&last=2026-12-31&verify=yes"
    base, wrong = f"http://127.0.0.1:{server.port}", []
    with browser() as page:
        ((name, value),) = ann.cookies.items()
        page.cookie(name, value, base)
        for number, path in enumerate((*PAGES, f"/releases/{made.id}", printed)):
            wrong += [(path, *each) for each in faults(page, base + path, 390, number % 2 == 1)]
        assert page.value("document.styleSheets.length") == 1
    assert wrong == []


# -- what is found is what holds the words, page by page -------------------------------------------


PURPOSES = ("a dashboard", "Ein Überblick", 'say "hi" 100 %', "under_score \\ back", "dataset")


@pytest.fixture
def asked(book: Book):
    filled(book, rho=1000.0)
    for n, purpose in enumerate(PURPOSES):
        ask(book, gaussian(), purpose=purpose, by=f"name{n}", request=f"q{n}")
    return book


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", "43210"),
        ("DASH", "0"),
        ("überblick", "1"),
        ("ÜBERBLICK ein", "1"),
        ('"hi"', "2"),
        ("%", "2"),
        ("_", "3"),
        ("\\", "3"),
        ("name2 say", "2"),
        ("name2 dash", ""),
        ("charged", ""),  # a key of the record, and no word of it
        ("status", ""),
        ("' OR 1=1 --", ""),
    ],
)
def test_words(asked, words, found):
    assert "".join(each.request[1] for each in find(asked, words=words).releases) == found


def test_filters_and_pages(asked):
    asked.add(DataSet("other", *_about()), by="officer")
    assert find(asked, dataset="other").releases == ()
    assert find(asked, dataset="visits' OR '1'='1").releases == ()
    assert find(asked, status="closed").releases == ()
    assert len(find(asked, status="reserved").releases) == 5
    first = find(asked, most=2)
    second = find(asked, most=2, before=first.before)
    third = find(asked, most=2, before=second.before)
    told = [each.request for page in (first, second, third) for each in page.releases]
    assert told == ["q4", "q3", "q2", "q1", "q0"]
    assert third.before == 0
    for wrong in ({"most": 0}, {"most": 10**6}, {"before": -1}, {"before": 2**63}):
        with pytest.raises(InputError, match="it must be from 1 to 1000"):
            find(asked, **wrong)


def _about():
    from booking import ABOUT

    return ABOUT


# -- the report of a period: what is in it and what is not, on a page and on paper -----------------


@pytest.fixture
def year(book, clock):
    """Of ρ = 1: an eighth in November, another in December, one refused."""
    filled(book, rho=1.0)
    ask(book, gaussian(2.0), purpose="in november", approved="the board")
    clock.move(days=30)
    ask(book, gaussian(2.0), purpose="in december <b>")
    with pytest.raises(BudgetExceededError):
        ask(book, gaussian(0.1))
    record_refusal(book, "vic", what="reserve", why="no", times=7)
    return book


def test_a_period(year):
    whole = compliance(year, "2026-01-01", "2026-12-31")
    assert (whole.count, whole.approved, whole.refused, whole.barred) == (2, 1, 1, 7)
    ((_, (use,)),) = whole.rooms
    assert use.charged.startswith("25")
    november = compliance(year, "2026-11-23", "2026-11-23", dataset="visits", verify=False)
    assert (november.count, november.refused, november.barred) == (1, 0, 0)
    ((_, (use,)),) = november.rooms
    assert (use.charged, use.used[:2]) == ("12.5 %", "25") or use.charged == "12.6 %"
    page = Page(november.html()).text
    assert "in november" in page
    assert "in december" not in page
    assert "nobody recomputed it" in page
    assert f"{november.head['lines']} lines" in page
    assert compliance(year, "2020-01-01", "2020-01-02").releases == ()


def test_files(year, tmp_path):
    report = compliance(year, "2026-01-01", "2026-12-31")
    page = write(tmp_path / "a.html", report).read_text("utf-8")
    assert "<link" not in page
    assert "in december &lt;b&gt;" in page
    pdfium = pytest.importorskip("pypdfium2")
    pytest.importorskip("typst")
    with pdfium.PdfDocument(write(tmp_path / "a.pdf", report)) as document:
        text = document[0].get_textpage().get_text_range()
    for said in ("in december <b>", "2 were approved"[2:], "Denied attempts", "7, on all"):
        assert said in text
    with pytest.raises(InputError, match=r"must end in \.html or \.pdf"):
        write(tmp_path / "a.txt", report)


def test_what_is_wrong(year):
    for days in (("2026-02-30", "2026-03-01"), ("2026-03-02", "2026-03-01"), ("", "")):
        with pytest.raises(InputError, match="it must be two days in order"):
            compliance(year, *days)
    with pytest.raises(InputError, match="does not have"):
        compliance(year, "2026-01-01", "2026-12-31", dataset="visit")
    from sqlalchemy import text

    with year._store.transaction(writes=True) as connection:
        connection.execute(text("DELETE FROM spent"))
    with pytest.raises(TamperedError):
        compliance(year, "2026-01-01", "2026-12-31")


# -- how much was left, by day: beside what the book itself adds up --------------------------------


def told(course, book, name):
    budget = next(
        each.budget for each in remaining_budgets(book)[0].left if each.budget.name == name
    )
    return [(point.at, round(point.used, 9)) for point in course.of(budget)]


def test_budgets_of_every_window(book, clock):
    filled(book, epsilon=1.0)
    for name, window in (("monthly", "month"), ("rolling", "2 days")):
        made = BudgetRecord(name, "visits", limit_of({"epsilon": 2.0}), window)
        book.add(made, by="officer")
    course = BudgetHistory(book)
    ask(book, laplace(8.0))
    assert told(course, book, "main") == [("2026-11-23", 0.125)]
    for days in (1, 1, 10):
        clock.move(days=days)
        ask(book, laplace(8.0))
    days = ["2026-11-23", "2026-11-24", "2026-11-25", "2026-12-05"]
    shares = [0.125, 0.25, 0.375, 0.5]
    assert told(course, book, "main") == list(zip(days, shares, strict=True))
    assert told(BudgetHistory(book), book, "main") == told(course, book, "main")
    assert told(course, book, "monthly") == [("2026-11", 0.1875), ("2026-12", 0.0625)]
    rolling = [0.0625, 0.125, 0.125, 0.0625]
    assert told(course, book, "rolling") == list(zip(days, rolling, strict=True))
    for left in remaining_budgets(book)[0].left:
        assert course.of(left.budget)[-1].used == left.share


def test_what_is_given_back_and_what_was_before(book, clock):
    filled(book, epsilon=1.0)
    ask(book, laplace(8.0))
    made = BudgetRecord("later", "visits", limit_of({"epsilon": 1.0}), approval=True)
    book.add(made, by="officer")
    course, asked = BudgetHistory(book), ask(book, laplace(8.0))
    clock.move(days=1)
    decide(book, asked.id, by="bob", approve=False, why="no")
    for name in ("main", "later"):
        assert told(course, book, name) == [("2026-11-23", 0.25), ("2026-11-24", 0.125)]


def test_a_drawing_stays_within_its_frame():
    points = [Point("2026-01-01", 0.25), Point("2026-01-11", 3.0)]
    drawn = drawing(points, "2026-01-21")
    assert drawn.line == "52.0,47.0 241.0,47.0 241.0,152.0 430.0,152.0".replace(
        "52.0,47.0", "52,12 52.0,47.0"
    )
    assert (drawn.first, drawn.last) == ("2026-01-01", "2026-01-21")
    assert drawing([], "2026-01-21") is None
    assert drawing([Point("2026-W01", 0.5)], "2026-01-21").last == "2026-W01"
    assert points[1].described == "more than all"
    assert points[0].described == "25 %"


def test_long_tables_are_thinned():
    points = [Point(f"{n}", n / 1000) for n in range(1000)]
    kept = thinned(points)
    assert len(kept) <= 24
    assert kept[-1] is points[-1]
    assert thinned(points[:5]) == points[:5]
    assert pytest.approx(0.999) == kept[-1].used


# -- certificates are found by hash, and by nothing else -------------------------------------------


@pytest.fixture
def found():
    return certify(gaussian(), claim=Claim(9.0, 1e-6), subject=SubjectRecord("x")).to_dict()


def test_what_is_there_and_what_is_not(found, tmp_path, monkeypatch):
    monkeypatch.setattr("dpaudit.book.server.certificate_store._PAUSE", 0.0)
    shelf, digest = CertificateStore(tmp_path), found["digest"]
    for name, text in (
        ("a", "{"),
        ("b", "[]"),
        ("c", '{"digest": 3}'),
        ("d", "\xff"),
        ("e", "[" * 9999),
    ):
        (tmp_path / f"{name}.json").write_text(text, "latin-1")
    assert digest not in shelf
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep" / "x.json"
    path.write_text(files.pretty_json(found))
    assert digest in shelf
    assert shelf.certificate(digest).to_dict() == found
    path.write_text(files.pretty_json(found | {"digest": "ab" * 32}))
    with pytest.raises(InputError):
        shelf.certificate(digest)
    for wrong in ("", "ab" * 31, "../x"):
        assert wrong not in shelf
    assert digest not in CertificateStore(None)


def test_no_link_leads_out(found, tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "x.json").write_text(json.dumps(found))
    (inside / "x.json").symlink_to(outside / "x.json")
    (inside / "more").symlink_to(outside)
    assert found["digest"] not in CertificateStore(inside)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(InputError, match="it must be a folder"):
        shelf_of(tmp_path / "none")
