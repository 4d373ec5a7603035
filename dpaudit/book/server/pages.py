"""The pages for people, and their forms: who may open them, and what a browser sends back.

Each is a function of a visit, in one table with the role that may see it. A form changes nothing
without the session's proof, and no page has a script.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from dpaudit.base import toml_tables
from dpaudit.base.errors import AccessError, BudgetExceededError, InputError
from dpaudit.base.files import pretty_json
from dpaudit.base.names import same_person
from dpaudit.base.validate import shown
from dpaudit.book import RemainingBudget, Role, Status, decide, remaining_budgets
from dpaudit.book.costs import ReleaseCosts
from dpaudit.book.server import api
from dpaudit.book.server.api import find
from dpaudit.book.server.budget_history import drawing, thinned
from dpaudit.book.server.compliance import compliance
from dpaudit.book.server.guarding import require_same_site
from dpaudit.book.server.request_context import COOKIE, SECONDS, Caller, ServerContext
from dpaudit.book.server.templating import render_page, style

_MOST_FIELDS = 40
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Visit:
    """One request of a browser.

    Attributes:
        context: what the server has at hand.
        caller: who asks; None on pages for anybody.
        fields: what was sent, of a form or in the address; a field that is missing is empty.
        parts: what the address names.
    """

    context: ServerContext
    caller: Caller | None
    fields: Mapping[str, str]
    parts: Mapping[str, str]
    request: Request

    def field(self, name: str) -> str:
        """Return a field, without the spaces around it."""
        return self.fields.get(name, "").strip()

    @property
    def who(self) -> Caller:
        """Who asks, on pages for people who are known."""
        assert self.caller is not None
        return self.caller

    def page(self, template: str, title: str, code: int = 200, /, **facts: Any) -> Response:
        """Return a page of that template."""
        told: dict[str, Any] = {"who": self.caller, "title": title} | facts
        return HTMLResponse(render_page(template, **told), code)


Handler = Callable[[Visit], Response]


def endpoint(
    context: ServerContext, handler: Handler, least: Role | None, what: str
) -> Callable[[Request], Awaitable[Response]]:
    """Make a page for those whose role may see it; a form needs the session's proof."""

    def handled(request: Request, fields: Mapping[str, str]) -> Response:
        request.scope["dpaudit.action"] = what
        caller: Caller | None = request.scope["dpaudit.caller"]
        if least is not None and caller is None:
            return redirect(f"/login?next={quote(request.url.path)}")
        if request.method == "POST":
            require_same_site(request)
            if caller is not None and least is not None:
                caller.require_proof(fields.get("proof", ""))
        if least is not None and caller is not None:
            caller.require(least, what)
        return handler(Visit(context, caller, fields, request.path_params, request))

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            fields = _fields(await request.body(), request.headers.get("content-type", ""))
        else:
            fields = dict(request.query_params)
        return await run_in_threadpool(handled, request, fields)

    return answer


def redirect(where: str) -> Response:
    """Lead to another page of this server, which is then asked for by GET."""
    return RedirectResponse(where, 303)


def _fields(body: bytes, kind: str) -> Mapping[str, str]:
    if kind.partition(";")[0].strip().lower() != FORM:
        raise InputError(f"the form has another content type; it must be {FORM}.")
    try:
        found = parse_qsl(body.decode("ascii"), True, errors="strict", max_num_fields=_MOST_FIELDS)
        return {name: value.replace("\r\n", "\n") for name, value in found}  # of text areas
    except ValueError:
        raise InputError("the form cannot be read; it must be text in UTF-8.") from None


_EXAMPLE = """[plan]
unit = {unit}
relation = {relation}
trust = {trust}

[[invocation]]
mechanism = "laplace"
scale = 10.0
contribution = 1.0
count = 1
"""


def _examples(visit: Visit) -> dict[str, str]:
    """Return by data set a plan that protects what it asks for, and that every budget can count."""
    known = [each.dataset.to_dict() for each in remaining_budgets(visit.context.book)]
    made = ({key: toml_tables.inline(value) for key, value in each.items()} for each in known)
    return {own["name"]: _EXAMPLE.format(**each) for own, each in zip(known, made, strict=True)}


def routes(context: ServerContext) -> list[Route]:
    """Return every page, with the role that may see it."""
    made = [
        ("GET", "/", overview, Role.VIEWER),
        ("GET", "/releases", releases, Role.VIEWER),
        ("GET", "/releases/{release}", release, Role.VIEWER),
        ("POST", "/releases/{release}/approve", approve, Role.APPROVER),
        ("POST", "/releases/{release}/deny", deny, Role.ANALYST),
        ("POST", "/releases/{release}/abandon", abandon, Role.ANALYST),
        ("POST", "/releases/{release}/withdraw", withdraw, Role.ANALYST),
        ("GET", "/calculator", calculator, Role.VIEWER),
        ("POST", "/calculator", calculate, Role.VIEWER),
        ("POST", "/reserve", reserve, Role.ANALYST),
        ("GET", "/report", report, Role.VIEWER),
        ("GET", "/report.{kind}", report_file, Role.VIEWER),
        ("GET", "/check", check, Role.VIEWER),
        ("POST", "/check", verify, Role.VIEWER),
        ("GET", "/export/{kind}", export, Role.VIEWER),
        ("GET", "/certificates/{digest}", certificate, Role.VIEWER),
        ("GET", "/public", public, None),
        ("GET", "/login", login, None),
        ("POST", "/login", sign_in, None),
        ("POST", "/logout", sign_out, Role.VIEWER),
        ("GET", "/style.css", style_sheet, None),
    ]
    return [
        Route(path, endpoint(context, handler, least, handler.__name__), methods=[method])
        for method, path, handler, least in made
    ]


def overview(visit: Visit) -> Response:
    """Return what is left of every budget, and how it came to that."""
    context, today = visit.context, visit.context.book.today.isoformat()
    shown = [_with_history(context, each, today) for each in remaining_budgets(context.book)]
    waiting = find(context.book, status=str(Status.REQUESTED), most=20).releases
    return visit.page("overview", "Budgets", rooms=shown, waiting=waiting)


def _with_history(context: ServerContext, known: RemainingBudget, today: str) -> dict[str, Any]:
    budgets = []
    for left in known.left:
        period, points = context.history.only_period(left.budget), context.history.of(left.budget)
        budgets.append(
            {
                "left": left,
                "period": period,
                "points": thinned(points),
                "drawing": drawing(points, today, period),
            }
        )
    return {"dataset": known.dataset, "releases": known.words, "budgets": budgets}


def releases(visit: Visit) -> Response:
    """Show releases that were sought."""
    before = visit.field("before") or "0"
    if not re.fullmatch("[0-9]{1,18}", before):
        raise InputError("before must be the number of a release.")
    sought: dict[str, Any] = {name: visit.field(name)[:200] for name in ("dataset", "status")}
    words = visit.field("q")[:200]
    found = find(visit.context.book, words=words, before=int(before), **sought)
    rooms = remaining_budgets(visit.context.book)
    own = (Counter(r.words) for r in rooms if sought["dataset"] in ("", r.dataset.name))
    facts = {"found": found, "words": words, "names": visit.context.names, "statuses": list(Status)}
    facts["counts"] = None if words or sought["status"] else sum(own, Counter())
    return visit.page("releases", "Releases", **(facts | sought))


def release(visit: Visit) -> Response:
    """Return a release, and what may be decided of it."""
    book, known = visit.context.book, visit.context.book.release(_id(visit))
    plan, mine = book.plan(known.plan), known.by == visit.who.name
    counts = {left.budget.name for left in visit.context.remaining(known.dataset).left}
    own = ReleaseCosts(book)
    costs = [
        (name, own.of(known, name), ", ".join(buckets))
        for name, (buckets, _) in known.charged.items()
        if name in counts
    ]
    approver = visit.who.token.role.may(Role.APPROVER)
    waits, may_end = known.status is Status.REQUESTED, approver or mine
    return visit.page(
        "release",
        f"Release {known.id}",
        release=known,
        plan=plan,
        costs=costs,
        has_certificate=known.certificate in visit.context.certificates,
        may_approve=waits and approver and not same_person(known.by, visit.who.name),
        may_deny=waits and may_end,
        may_abandon=may_end and known.status is Status.RUNNING,
        may_withdraw=may_end and known.status is Status.RESERVED,
    )


def approve(visit: Visit) -> Response:
    """Approve a release."""
    told = {"by": visit.who.name, "why": visit.field("why")}
    decide(visit.context.book, _id(visit), approve=True, **told)
    return redirect(f"/releases/{_id(visit)}")


def deny(visit: Visit) -> Response:
    """Deny or withdraw a release."""
    api.deny(visit.context, visit.who, _id(visit), visit.field("why"))
    return redirect(f"/releases/{_id(visit)}")


def abandon(visit: Visit) -> Response:
    """Abandon a release; it stays charged."""
    if not visit.field("why"):
        raise InputError("the field 'why' is empty; give the reason for abandoning the release.")
    api.close(visit.context, visit.who, _id(visit), abandoned=visit.field("why"))
    return redirect(f"/releases/{_id(visit)}")


def withdraw(visit: Visit) -> Response:
    """Withdraw a release of which nothing ran; its charge is given back."""
    if not visit.field("why"):
        raise InputError("the field 'why' is empty; give the reason for withdrawing the release.")
    api.close(visit.context, visit.who, _id(visit), withdrawn=visit.field("why"))
    return redirect(f"/releases/{_id(visit)}")


def _id(visit: Visit) -> str:
    given = visit.parts["release"]
    if not re.fullmatch("R[0-9]{1,18}", given):
        raise InputError(f"release is {shown(given)}, which the book does not have.")
    return given


def calculator(visit: Visit) -> Response:
    """Return what could still be released, with an example for the data set."""
    examples, dataset = _examples(visit), visit.field("dataset")
    plan = examples.get(dataset) or next(iter(examples.values()), "")
    return _calculator(visit, plan=plan, dataset=dataset)


def calculate(visit: Visit) -> Response:
    """Return the answer; what is wrong with a plan stands beside it."""
    given: dict[str, Any] = {
        name: visit.fields.get(name, "") for name in ("dataset", "plan", "period")
    }
    examples = _examples(visit)
    if given["plan"] in examples.values():  # that of another data set, which nobody edited
        given["plan"] = examples.get(given["dataset"], given["plan"])
    try:
        _, found = visit.context.fit(visit.who, **given)
    except InputError as error:
        return _calculator(visit, 400, said=str(error), **given)
    return _calculator(visit, found=found, request=secrets.token_hex(16), **given)


def _calculator(visit: Visit, status: int = 200, **facts: Any) -> Response:
    known: dict[str, Any] = {"found": None, "said": "", "period": "", "request": ""}
    analyst = visit.who.token.role.may(Role.ANALYST)
    known |= {"names": visit.context.names, "analyst": analyst, **facts}
    return visit.page("calculator", "What could still be released", status, **known)


def reserve(visit: Visit) -> Response:
    """Charge the plan that was calculated; sent twice, it is charged once."""
    told = {name: visit.field(name) for name in ("dataset", "purpose", "request")}
    told |= {"by": visit.who.name}
    try:
        plan = visit.fields.get("plan", "")
        made = visit.context.reserve(plan, period=visit.field("period") or None, **told)
    except (InputError, BudgetExceededError) as error:
        given = {name: visit.fields.get(name, "") for name in ("plan", "dataset", "period")}
        return _calculator(visit, 409, said=str(error), **given)
    return redirect(f"/releases/{made.id}")


def report(visit: Visit) -> Response:
    """Return the form of the compliance report."""
    today = visit.context.book.today
    facts = {"first": today - timedelta(days=364), "last": today, "names": visit.context.names}
    return visit.page("report", "Compliance report", **facts)


def report_file(visit: Visit) -> Response:
    """Return the compliance report, as a page or as a PDF."""
    days, verify = (visit.field("first"), visit.field("last")), bool(visit.field("verify"))
    with visit.context.heavy(visit.who):
        made = compliance(visit.context.book, *days, dataset=visit.field("dataset"), verify=verify)
        if visit.parts["kind"] == "pdf":
            headers = {"Content-Disposition": 'inline; filename="report.pdf"'}
            return Response(made.pdf(), media_type="application/pdf", headers=headers)
        if visit.parts["kind"] != "html":
            raise InputError("the report is available as report.html and report.pdf.")
        return Response(made.html(), media_type="text/html")


def check(visit: Visit) -> Response:
    """Tell whether the book holds, and exports."""
    return visit.page("check", "Check and export", facts=None, said="")


def verify(visit: Visit) -> Response:
    """Return the book, recomputed from its log."""
    facts, said = visit.context.verify(visit.who)
    return visit.page("check", "Check and export", facts=facts or None, said=said)


def export(visit: Visit) -> Response:
    """Return all releases, as a file."""
    return api.download(visit.context, visit.who, visit.parts["kind"])


_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-popups"
)
"""A report carries its own style, and nothing in it may act."""


def certificate(visit: Visit) -> Response:
    """Return the report on a certificate, or with ``.json`` the certificate."""
    digest, _, ending = visit.parts["digest"].partition(".")
    if not re.fullmatch("[0-9a-f]{64}", digest) or ending not in ("", "json"):
        raise InputError("certificate must be requested by its hash, 64 hexadecimal digits.")
    if ending:
        found = pretty_json(visit.context.certificates.certificate(digest).to_dict())
        return Response(found, media_type="application/json")
    with visit.context.heavy(visit.who):
        page = visit.context.certificates.report(digest)
    headers = {"Content-Security-Policy": _REPORT_POLICY}
    return Response(page, media_type="text/html", headers=headers)


def public(visit: Visit) -> Response:
    """Return what anybody may see."""
    shown = []
    for each in api.public_budgets(visit.context):
        closed = find(visit.context.book, dataset=each.dataset.name, status="closed", most=200)
        completed = [one for one in closed.releases if one.word == Status.CLOSED.word]
        told = {"closed": each.words.get(Status.CLOSED.word, 0), "releases": completed}
        shown.append({"dataset": each.dataset, "budgets": each.left, **told})
    return visit.page("public", "What was released, and what it costs", rooms=shown)


def login(visit: Visit) -> Response:
    """Return the form for a token."""
    return visit.page("login", "Sign in", said="", next=_inside(visit.field("next")))


def sign_in(visit: Visit) -> Response:
    """Return a session of who holds the token."""
    visit.request.scope["dpaudit.action"] = "sign in"
    try:
        cookie = visit.context.callers.begin(visit.field("token")[:200])
    except AccessError as error:
        visit.context.denials.record("", "sign in", str(error))
        said, after = str(error), _inside(visit.field("next"))
        return visit.page("login", "Sign in", 401, said=said, next=after)
    answer, secure = redirect(_inside(visit.field("next"))), visit.context.secure
    answer.set_cookie(
        COOKIE, cookie, max_age=SECONDS, secure=secure, httponly=True, samesite="strict"
    )
    return answer


def _inside(where: str) -> str:
    """Return a page of this server: no other address begins with one slash and plain letters."""
    return where if re.fullmatch(r"/[A-Za-z0-9][A-Za-z0-9/.\-]*", where) else "/"


def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.context.callers.end(visit.request.cookies[COOKIE])
    answer = redirect("/login")
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def style_sheet(_: Visit) -> Response:
    """Return the style sheet."""
    return Response(style(), media_type="text/css", headers={"Cache-Control": "max-age=3600"})
