"""What this application offers: a second opinion on certificates.

The kernel's ``verify`` and ``report`` ask for it; dp-accounting is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.base.applications import offer
from dpaudit.base.optional_import import optional_import

if TYPE_CHECKING:
    from dpaudit.workflow.verifying import Opinion


def opinion_of(
    second_opinion: Annotated[
        bool,
        typer.Option(
            "--second-opinion",
            help="Also let dp-accounting compose the plan, and compare; takes seconds.",
        ),
    ] = False,
) -> Opinion | None:
    """Make what asks dp-accounting; options of ``dpaudit verify`` and ``dpaudit report``."""
    if not second_opinion:
        return None
    library = optional_import("", "dpaudit.interchange.dp_accounting", what="a second opinion")
    opinion: Opinion = library.second_opinion
    return opinion


for each in ("verify", "report"):
    offer(f"options of {each}", "second_opinion", opinion_of)
