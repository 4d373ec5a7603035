"""Makes the pictures of a report anew: ``python docs/site/picture.py`` (needs Chromium).

It releases the table of the examples, as the first page says, and keeps what stands at the top of
the report: the verdict, what is claimed and what is proved. None of that depends on the noise.
"""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from chromium import Browser, browser

EXAMPLES = Path(__file__).parents[1] / "examples"
WIDTH, SHARPER = 920, 2
"""Of the page, and how many pixels of the picture one of its pixels has."""
COLOURS = 64


def taken(screen: Browser, page: Path, dark: bool) -> Image.Image:
    """The top of a report, down to the two numbers."""
    screen.look(WIDTH, dark=dark)
    screen.open(page.as_uri())
    end = screen.value("document.querySelector('dl.terms').getBoundingClientRect().top")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": int(end) - 8, "scale": SHARPER}
    shot = screen.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"])))
    return picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def main() -> None:
    """Write both pictures over those that are there."""
    with tempfile.TemporaryDirectory() as folder, browser() as screen:
        release = [sys.executable, "-m", "dpaudit", "release", str(EXAMPLES / "visits.toml")]
        subprocess.run([*release, "-o", folder], check=True, stdout=subprocess.DEVNULL)
        for name, dark in (("report.png", False), ("report-dark.png", True)):
            taken(screen, Path(folder) / "report.html", dark).save(EXAMPLES / name, optimize=True)


if __name__ == "__main__":
    main()
