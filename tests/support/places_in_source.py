"""What every place in a source must be."""

import re
from urllib.parse import unquote, urlsplit


def assert_below_root(uri):
    parts = urlsplit(uri)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
    assert not uri.startswith("/")
    assert ".." not in unquote(uri).replace("\\", "/").split("/")
    assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri)
