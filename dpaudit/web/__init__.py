"""The book in a browser, and for programs (extra ``book``): pages, an HTTP API, roles."""

from dpaudit.web.application import application
from dpaudit.web.compliance import Compliance, compliance
from dpaudit.web.server import Place, serve

__all__ = ["Compliance", "Place", "application", "compliance", "serve"]
