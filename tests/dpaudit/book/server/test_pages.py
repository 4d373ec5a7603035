"""The pages as people see them: with a session, without scripts, on paper and to screen readers."""

from __future__ import annotations

import re
from html import unescape

import pytest
from axe import faults
from booking import ABOUT, PLAN_FILE, gaussian, laplace, opened
from chromium import binary, browser
from pages import Page
from web_client import FORM, Client

from dpaudit import (
    AddRemove,
    MetricBall,
    PoissonSampling,
    PrivacyUnit,
    ReplaceOne,
    TrustModel,
    ZeroOut,
)
from dpaudit.base import files
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
from dpaudit.certificate import Claim, SubjectRecord, certify

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
    assert "This plan fits 4 times." in Page(page).text
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
    assert bob.send(f"{release}/withdraw", why="").status == 400
    assert "Withdraw it if nothing ran" in Page(ann.get(release).text).text
    assert ann.send(f"{release}/withdraw", why="not needed").status == 303
    assert not any(any(own.total) for own in remaining_budgets(guarded, "visits")[0].left)
    denied = ann.send("/reserve", **(told | {"request": "2"})).headers["location"]
    assert bob.send(f"{denied}/deny", why="no").status == 303
    assert "denied" in Page(bob.get("/releases?status=denied").text).text
    verify_book(guarded)


def test_the_example_of_every_data_set_is_computed(guarded, visitors):
    about = [
        (PrivacyUnit(f'user "{relation}"'), relation, trust)
        for relation in (AddRemove(), ReplaceOne(), ZeroOut(), MetricBall(2.0))
        for trust in TrustModel
        if trust is not TrustModel.LOCAL or relation.replaces  # else no plan is possible
    ]
    curve = {"curve": [[2.0, 0.5], [32.0, 9.0]]}
    limits = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 1.0}, curve]
    for number, each in enumerate(about):
        guarded.add(DataSet(f"set {number}", *each), by="officer")
        limit = limit_of(limits[(number + number // 3) % 4])
        guarded.add(BudgetRecord(f"of {number}", f"set {number}", limit), by="officer")
    ann = visitors["ann"]
    others = area(ann.get("/calculator?dataset=visits").text)
    assert 'unit = "user"' in others
    for number, (unit, relation, _) in enumerate(about):
        own = area(ann.get(f"/calculator?dataset=set+{number}").text)
        assert str(relation) in own
        for plan in (own, others):  # the example that was shown before the choice is replaced
            page = ann.send("/calculator", dataset=f"set {number}", plan=plan).text
            assert re.search(r"This plan fits [1-9]\d* times\.", Page(page).text), (
                unit,
                Page(page).text,
            )
            assert area(page) == own
    edited = others.replace("10.0", "11.0")
    refused = ann.send("/calculator", dataset="set 5", plan=edited)
    assert (refused.status, area(refused.text)) == (400, edited)


def area(page):
    return unescape(page.partition('maxlength="100000">\n')[2].partition("</textarea>")[0])


def test_charts_and_counts_say_what_they_show(guarded, visitors, server, clock):
    guarded.add(BudgetRecord("each week", "sales", limit_of({"rho": 1.0}), "week"), by="officer")
    guarded.add(BudgetRecord("rolling", "sales", limit_of({"rho": 1.0}), "30 days"), by="officer")
    for why in ("", "", "broken"):
        made = guarded.reserve("sales", gaussian(4.0), by="ann", purpose="x")
        guarded.close(made.id, by="ann", abandoned=why)
    page = visitors["vic"].get("/").text
    for said in (
        "3 releases: 2 completed, 1 abandoned.",
        "Limit: rho = 1.0 (rho), for all time.",
        "Share of the budget left 100 %",
        "used in 2026-W48: rho",
        "Share of the budget left in 2026-W48 ",
        "used in the 30 days to 2026-11-23: rho",
        "Share of the budget left, counting the 30 days up to each date",
    ):
        assert said in Page(page).text
    drawn = re.findall(r'<svg [^>]*role="img" aria-labelledby="([^"]+)"', page)
    assert len(drawn) == 3
    assert all(page.count(f'<p id="{each}">Share of the budget left') == 1 for each in drawn)
    listed = visitors["vic"].get("/releases?dataset=sales").text
    assert "3 releases: 2 completed, 1 abandoned." in Page(listed).text
    publish(guarded, "sales", by="officer")
    shown = Page(server.get("/public").text).text
    assert "2 completed releases" in shown
    assert "abandoned" not in shown


def test_what_released_nothing_is_called_so_everywhere(guarded, visitors, server, tmp_path):
    made = guarded.reserve("sales", gaussian(4.0), by="ann", purpose="failed early")
    opened(made, tmp_path / "j").close()
    guarded.close(made.id, by="ann", journal=tmp_path / "j")
    publish(guarded, "sales", by="officer")
    vic = visitors["vic"]
    whole = vic.get("/report.html?first=2026-01-01&last=2026-12-31&dataset=sales").text
    for page in (vic.get("/").text, vic.get("/releases?dataset=sales").text, whole):
        assert "1 release: 1 released nothing" in Page(page).text
        assert "1 completed" not in Page(page).text
    page = Page(vic.get(f"/releases/{made.id}").text).text
    assert "Status released nothing" in page
    assert "What it costs on its own of sales : nothing (all time)" in page
    shown = Page(server.get("/public").text).text
    assert "completed" not in shown
    assert server.get("/api/public").json[0]["closed"] == 0


def test_pages_say_what_used_is_a_share_of(guarded, visitors, server):
    publish(guarded, "sales", by="officer")
    addresses = ("/", "/public", "/report.html?first=2026-01-01&last=2026-12-31")
    for address in addresses:
        assert "“Used” is the share" not in visitors["vic"].get(address).text
    for name, kind in (("by order", "renyi"), ("by rho", "zcdp")):
        limit = limit_of({"kind": kind, "epsilon": 1.0, "delta": 1e-6})
        guarded.add(BudgetRecord(name, "sales", limit), by="officer")
    for address in addresses:
        text = Page(visitors["vic"].get(address).text).text
        assert "“Used” is the share of the Rényi divergences that the limit allows" in text
        assert "the ρ that the limit allows" in text


def test_a_release_says_how_units_are_sampled(guarded, visitors):
    plan = gaussian(4.0, count=10, sampling=PoissonSampling(0.25))
    made = guarded.reserve("sales", plan, by="ann", purpose="x")
    said = Page(visitors["vic"].get(f"/releases/{made.id}").text).text
    assert "poisson , rate = 0.25" in said
    other = guarded.reserve("sales", gaussian(4.0), by="ann", purpose="x")
    assert "all take part" in Page(visitors["vic"].get(f"/releases/{other.id}").text).text


@pytest.mark.skipif(binary() is None, reason="there is no Chromium on the PATH")
def test_a_chart_fills_its_card(guarded, visitors, server):
    guarded.reserve("sales", gaussian(4.0), by="ann", purpose="x")
    base, ((name, value),) = f"http://127.0.0.1:{server.port}", visitors["ann"].cookies.items()
    with browser() as page:
        page.cookie(name, value, base)
        for width in (390, 1280):
            page.look(width)
            page.open(base + "/")
            inner, whole = page.value(_WIDTHS)
            assert abs(inner - whole) < 1, (width, inner, whole)


_WIDTHS = """(() => {
  const card = document.querySelector(".card:has(svg)"), style = getComputedStyle(card);
  const chart = card.querySelector("svg").getBoundingClientRect();
  const right = card.getBoundingClientRect().right - parseFloat(style.paddingRight);
  const scale = card.querySelector(".scale");
  const left = scale === null ? chart.left : scale.getBoundingClientRect().left;
  return [chart.right - left, right - card.querySelector("h3").getBoundingClientRect().left - 1];
})()"""


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
    assert "the server does not have its file" in vic.get(f"/releases/{made.id}").text
    (tmp_path / "shelf" / "a.json").write_text(files.pretty_json(found))
    page = vic.get(f"/certificates/{digest}")
    assert page.status == 200
    assert "sandbox" in page.headers["content-security-policy"]
    assert vic.get(f"/certificates/{digest}.json").json == found
    assert f"/certificates/{digest}" in vic.get(f"/releases/{made.id}").text


PAGES = ("/", "/releases", "/calculator", "/report", "/check", "/public", "/nothing")


@pytest.mark.skipif(binary() is None, reason="there is no Chromium on the PATH")
def test_a_browser_and_a_screen_reader_can_use_every_page(guarded, visitors, server):
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
