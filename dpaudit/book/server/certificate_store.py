"""Certificates by their hash, from a folder to which others write.

Pages of releases look them up. No part of a request becomes part of a path, no link is followed,
and the hash of what is shown is computed again.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from dpaudit.base.errors import InputError
from dpaudit.base.files import MAX_JSON_BYTES
from dpaudit.certificate import Certificate, load_certificate
from dpaudit.reporting.html.page import HtmlRenderer

_MOST_FILES = 20_000
_PAUSE = 5.0
_KEPT = 16


class CertificateStore:
    """A folder's certificates, by hash alone: no part of a request is ever part of a path.

    Args:
        folder: where they are, at any depth; None for an empty shelf.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder.resolve()
        self._known: dict[str, Path] = {}
        self._seen: dict[Path, tuple[float, int]] = {}
        self._pages: OrderedDict[str, str] = OrderedDict()
        self._next = 0.0
        self._lock = threading.Lock()

    def __contains__(self, digest: str) -> bool:
        """Whether there is one of that hash."""
        with self._lock:
            if digest and digest not in self._known and time.monotonic() >= self._next:
                self._look()
                self._next = time.monotonic() + _PAUSE
            return digest in self._known

    def certificate(self, digest: str) -> Certificate:
        """Return the certificate of that hash, which is computed again.

        Raises:
            InputError: if there is none, or it was edited.
        """
        if digest not in self:
            raise InputError("the server has no certificate with that hash.")
        found = load_certificate(self._known[digest])
        if found.to_dict()["digest"] != digest:
            raise InputError("the file of that certificate was changed; put the original back.")
        return found

    def report(self, digest: str) -> str:
        """Return the report on it, as one page."""
        certificate = self.certificate(digest)
        with self._lock:
            if digest not in self._pages:
                self._pages[digest] = HtmlRenderer().render(certificate)
                while len(self._pages) > _KEPT:
                    self._pages.popitem(last=False)
            return self._pages[digest]

    def _look(self) -> None:
        for path in self._files():
            try:
                facts = path.stat()
                stamp = facts.st_mtime, facts.st_size
                if self._seen.get(path) == stamp or facts.st_size > MAX_JSON_BYTES:
                    continue
                self._seen[path] = stamp
                digest = json.loads(path.read_bytes())["digest"]
            except (OSError, ValueError, TypeError, LookupError, RecursionError):
                continue  # no certificate
            if isinstance(digest, str):
                self._known[digest] = path

    def _files(self) -> Iterator[Path]:
        """Yield regular files that end in .json, within the folder: no link leads out of it."""
        count = 0
        for folder, _, names in os.walk(self._folder or os.devnull):
            for name in names:
                path = Path(folder, name)
                if name.endswith(".json") and path.is_file() and not path.is_symlink():
                    count += 1
                    if count > _MOST_FILES:
                        return
                    yield path
