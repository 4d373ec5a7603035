"""``make docs``: puts the pages of the site together, and builds it into out/site.

Written pages are those of this folder's parent; others are made from the code (reference.py), or
stand elsewhere in the repository. Warnings are errors, dead links within the site among them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from reference import PAGES, api

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "site"
START = "start.md"
"""The page that is made of the README: its title, and the picture, are those of the home page."""
ELSEWHERE = {
    START: "README.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "explanation/architecture.md": "ARCHITECTURE.md",
    "evidence/papers.md": "reports/papers.md",
    "evidence/reports.md": "reports/index.md",
    "evidence/libraries.md": "reports/libraries/libraries.md",
    "evidence/trainings.md": "reports/trainings.md",
    "evidence/accountants.md": "reports/accountants/accountants.md",
    "evidence/auditors.md": "reports/auditors/auditors.md",
}
"""Pages that stand elsewhere in the repository."""
RENAMED = {"docs/search.md": "hyperparameter-tuning.md"}
"""Pages under another name: the site has a search.html of its own."""
OWN = {
    "index.md": "index.md",
    "reference/index.md": "reference.md",
    "evidence/index.md": "evidence.md",
}
"""Pages of this folder, which say where the others stand in the navigation."""

_PICTURE = re.compile(r"^!\[.*\]\(.*\)\n\n", re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)]*)?\)")


def pages() -> dict[str, str]:
    """All pages by their path within the site."""
    home = Path(__file__).parent
    names = (f"docs/{each.name}" for each in sorted((ROOT / "docs").glob("*.md")))
    written = {RENAMED.get(each, each.removeprefix("docs/")): each for each in names}
    sources = written | ELSEWHERE
    pages = {page: (home / source).read_text("utf-8") for page, source in OWN.items()}
    for page, source in sources.items():
        pages[page] = moved((ROOT / source).read_text("utf-8"), source, page, sources)
    pages[START] = re.sub(r"\A# .*", "# Get started", _PICTURE.sub("", pages[START]))
    pages |= {page: make() for page, make in PAGES.items()}
    return pages | dict(api())


def moved(text: str, source: str, page: str, sources: dict[str, str]) -> str:
    """A page at its place in the site: links lead to where the site has them, or nowhere."""
    shown = {there: name for name, there in sources.items()}

    def led(found: re.Match[str]) -> str:
        picture, words, link, anchor = found.groups()
        target = (ROOT / source).parent.joinpath(link).resolve().relative_to(ROOT).as_posix()
        if picture:
            return f"![{words}](/{target})"  # from the root of the sources, where main copies it
        if target not in shown:
            return words
        return f"[{words}]({'../' * page.count('/')}{shown[target]}{anchor or ''})"

    return _LINK.sub(led, text)


_MENDED = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1>\n<div id="search-results">',
}
"""What the theme leaves out that readers without a screen or a mouse need."""


def _mend(folder: Path) -> None:
    for page in folder.rglob("*.html"):
        text = page.read_text("utf-8")
        for old, new in _MENDED.items():
            text = text.replace(old, new)
        page.write_text(text, "utf-8")


def main() -> int:
    """Build everything anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    source = OUT / "source"
    for page, text in pages().items():
        path = source / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        for picture in re.findall(r"!\[[^\]]*\]\(/([^)\s]+)\)", text):
            (source / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / picture, source / picture)
    settings = ["-c", str(Path(__file__).parent), "-b", *(sys.argv[1:] or ["html"])]
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", *settings]
    code = subprocess.run([*words, str(source), str(OUT / "html")], check=False).returncode
    _mend(OUT / "html")
    if code == 0:
        print(f"the site begins at {OUT / 'html' / 'index.html'}")  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
