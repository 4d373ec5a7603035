"""The book in a browser, and for programs (extra ``book``): pages, an HTTP API, roles.

``dpaudit book serve`` runs it. Nothing here decides what is admitted: that is the book's own.
"""

from dpaudit.book.server.compliance import Compliance, compliance
from dpaudit.book.server.server import Place, application, serve

__all__ = ["Compliance", "Place", "application", "compliance", "serve"]
