"""Pages and their forms: who may open them, and what a browser sends back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from dpaudit.base.errors import InputError
from dpaudit.book import Role
from dpaudit.book.server.callers import Caller
from dpaudit.book.server.guarding import require_same_site
from dpaudit.book.server.request_context import ServerContext
from dpaudit.book.server.templating import rendered

_MOST_FIELDS = 40
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Visit:
    """One request of a browser.

    Attributes:
        desk: what the server has at hand.
        caller: who asks; None on pages for anybody.
        fields: what was sent, of a form or in the address; a field that is missing is empty.
        parts: what the address names.
    """

    desk: ServerContext
    caller: Caller | None
    fields: Mapping[str, str]
    parts: Mapping[str, str]
    request: Request

    def field(self, name: str) -> str:
        """A field, without the spaces around it."""
        return self.fields.get(name, "").strip()

    @property
    def who(self) -> Caller:
        """Who asks, on pages for people who are known."""
        assert self.caller is not None
        return self.caller

    def page(self, template: str, title: str, code: int = 200, /, **facts: Any) -> Response:
        """A page of that template."""
        told: dict[str, Any] = {"who": self.caller, "title": title} | facts
        return HTMLResponse(rendered(template, **told), code)


Handler = Callable[[Visit], Response]


def endpoint(
    desk: ServerContext, handler: Handler, least: Role | None, what: str
) -> Callable[[Request], Awaitable[Response]]:
    """A page for those whose role may see it; what changes something needs the session's proof."""

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
        return handler(Visit(desk, caller, fields, request.path_params, request))

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            fields = _fields(await request.body(), request.headers.get("content-type", ""))
        else:
            fields = dict(request.query_params)
        return await run_in_threadpool(handled, request, fields)

    return answer


def redirect(where: str) -> Response:
    """To another page of this server, which is then asked for by GET."""
    return RedirectResponse(where, 303)


def _fields(body: bytes, kind: str) -> Mapping[str, str]:
    if kind.partition(";")[0].strip().lower() != FORM:
        raise InputError(f"the form was sent in another way; it must be {FORM}.")
    try:
        found = parse_qsl(body.decode("ascii"), True, errors="strict", max_num_fields=_MOST_FIELDS)
        return {name: value.replace("\r\n", "\n") for name, value in found}  # of text areas
    except ValueError:
        raise InputError("the form cannot be read; it must be text in UTF-8.") from None
